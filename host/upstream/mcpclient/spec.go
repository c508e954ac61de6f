package mcpclient

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/lazyregexp"
)

// Spec describes one server: a program that communicates over its standard input and output, or a URL (streamable
// HTTP).
type Spec struct {
	// Name is the server's name in policies, metrics and logs: 1 to 40 of A-Z, a-z, 0-9, "_", "-" and ".", starting
	// with a letter.
	Name string
	// Prefix is prepended to the names of tools and prompts: 1 to 32 of A-Z, a-z, 0-9, "_" and "-". Empty means Name
	// and "_".
	Prefix string
	// Disabled keeps the server from being started.
	Disabled bool
	// Invalid says why the entry cannot be used. Such a server is down. Empty means that it can.
	Invalid string
	// Notes name settings of other clients that have no effect here, and why.
	Notes []string

	// Command is the program, found in PATH, or a path relative to Options.Dir. Args are its arguments. Both may
	// contain ${NAME}.
	Command string
	Args    []string
	// Env is added to the clean environment of the program.
	Env map[string]Value
	// Dir is the program's working directory, relative to Options.Dir. It may contain ${NAME}, and "~" for the home
	// directory, as Command may. Empty means Options.Dir.
	Dir string

	// URL is the endpoint of a server over HTTP. It may contain ${NAME}.
	URL string
	// Headers are sent with every request, and only to the origin of URL.
	Headers map[string]Value
	// Credential names one of Options.Credentials. It is sent like Headers and renewed when the server refuses it.
	Credential string
	// TLS names files, relative to Options.Dir.
	TLS TLS

	// ProtocolVersion is the version to try first. Empty means the newest, and 2025-11-25 if the server does not
	// understand that.
	ProtocolVersion string
	// StartTimeout bounds connecting, including the start of a program. Zero means 30s.
	StartTimeout time.Duration
	// Start is the time at which the server is connected. Empty means Options.Start.
	Start Start
	// IdleTimeout is the time without a call after which a lazy server is disconnected. Zero means 10m.
	IdleTimeout time.Duration
	// Tools selects the tools to offer.
	Tools Filter
	// TrustAnnotations lets the policy use the server's annotations of its tools (readOnlyHint and so on). Clients see
	// them in any case.
	TrustAnnotations bool
	// Elicitation chooses how the server's questions during a call are handled. Empty means ElicitationAsk.
	Elicitation Elicitation
	// Limits bound calls, as for a plugin. Time, Input, Output, Concurrency, Queue, QueueWait and Rate apply. Zero
	// fields mean Options.Limits.
	Limits manifest.Limits
}

// Elicitation is the handling of a server's questions.
type Elicitation string

// Values of Elicitation.
const (
	// ElicitationAsk asks the caller.
	ElicitationAsk Elicitation = "ask"
	// ElicitationDecline declines every question: nobody can be asked.
	ElicitationDecline Elicitation = "decline"
)

// Value is a string that may contain ${NAME} or ${NAME:-default} of Options.Environ, or a secret.
type Value struct {
	Text   string
	Secret secret.Source
}

// TLS names PEM files.
type TLS struct {
	// CA has certificates of authorities that are trusted besides the system's.
	CA string
	// Cert and Key are the client's own. Both or neither are set.
	Cert, Key string
}

// Filter selects tools by their own names, without the prefix. Patterns are those of path.Match. Deny has precedence
// over Allow, and an empty Allow allows all.
type Filter struct{ Allow, Deny []string }

func (f Filter) includes(tool string) bool {
	matches := func(pattern string) bool {
		ok, _ := path.Match(pattern, tool) // Check has seen the pattern
		return ok
	}
	return !slices.ContainsFunc(f.Deny, matches) && (len(f.Allow) == 0 || slices.ContainsFunc(f.Allow, matches))
}

var (
	serverName  = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,39}$`)
	toolPrefix  = lazyregexp.New(`^[A-Za-z0-9_-]{1,32}$`)
	versionDate = lazyregexp.New(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}$`)
)

// prefix returns the prefix of names at the frontends.
func (s *Spec) prefix() string {
	if s.Prefix != "" {
		return s.Prefix
	}
	name := safe(s.Name)
	return name[:min(len(name), 31)] + "_"
}

// Owns reports whether a tool or prompt with that name at the frontends can be the server's.
func (s *Spec) Owns(name string) bool { return !s.Disabled && strings.HasPrefix(name, s.prefix()) }

// OwnsResource reports whether a resource with that URI at the frontends can be the server's.
func (s *Spec) OwnsResource(uri string) bool {
	_, own := s.inside(uri)
	return !s.Disabled && own
}

// scheme returns what outside puts into the server's resource URIs: its name in the form of RFC 3986,
// section 3.1.
func (s *Spec) scheme() string {
	return strings.ReplaceAll(strings.ToLower(s.Name), "_", "-") + "+"
}

// Check returns an error for an invalid name or prefix, neither or both of Command and URL, a field that does not apply
// to one of them, or an invalid pattern or header.
func (s *Spec) Check() error {
	switch {
	case !serverName().MatchString(s.Name):
		return fmt.Errorf(
			`the name of a server must be 1 to 40 of A-Z, a-z, 0-9, "_", "-" and ".", starting with a letter`)
	case s.Prefix != "" && !toolPrefix().MatchString(s.Prefix):
		return errors.New(`prefix must be 1 to 32 of A-Z, a-z, 0-9, "_" and "-"`)
	case s.Command == "" && s.URL == "":
		return errors.New("command or url is missing: the program to start, or the address of the server")
	case s.Command != "" && s.URL != "":
		return errors.New("command and url exclude each other: remove one")
	case s.ProtocolVersion != "" && !versionDate().MatchString(s.ProtocolVersion):
		return errors.New(`protocolVersion must be one such as "2025-11-25"`)
	case s.Elicitation != "" && s.Elicitation != ElicitationAsk && s.Elicitation != ElicitationDecline:
		return errors.New("elicitation must be ask or decline")
	case s.Start != "" && s.Start != Eager && s.Start != Lazy:
		return errors.New("start must be eager or lazy")
	}
	for _, pattern := range slices.Concat(s.Tools.Allow, s.Tools.Deny) {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("tools: %q is not a pattern: %w", pattern, err)
		}
	}
	if s.URL == "" {
		return s.checkProgram()
	}
	return s.checkRemote()
}

func (s *Spec) checkProgram() error {
	if len(s.Headers) > 0 || s.Credential != "" || s.TLS != (TLS{}) {
		return errors.New("headers, credential and tls are for a url, and this is a command: use env, or remove them")
	}
	for name, v := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env: %q is not the name of a variable", name)
		}
		if err := v.check(); err != nil {
			return fmt.Errorf("env.%s: %w", name, err)
		}
	}
	return nil
}

func (s *Spec) checkRemote() error {
	if len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != "" {
		return errors.New("args, env and cwd are for a command, and this is a url: remove them")
	}
	for name, v := range s.Headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("headers: %q is not a header name", name)
		}
		if err := v.check(); err != nil {
			return fmt.Errorf("headers.%s: %w", name, err)
		}
	}
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		return errors.New("tls: cert and key go together: name both")
	}
	if !strings.Contains(s.URL, "${") {
		_, err := s.endpoint(s.URL)
		return err
	}
	return nil
}

// endpoint parses the URL with its variables expanded. The error does not contain it, because it may hold secrets.
func (s *Spec) endpoint(filled string) (*url.URL, error) {
	u, err := url.Parse(filled)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("url is not an http or https URL such as https://mcp.example.com/mcp")
	}
	if u.User != nil {
		return nil, errors.New("url contains a user or password: use headers")
	}
	if !address.IsConfidential(u) && (len(s.Headers) > 0 || s.Credential != "") {
		return nil, errors.New("headers and credentials are not sent in plain text beyond this machine: use https")
	}
	return u, nil
}

func (v Value) check() error {
	if v.Secret.IsZero() {
		return nil
	}
	return v.Secret.Check()
}

// checkSet checks the rules between servers. Disabled and invalid servers do not count.
func checkSet(specs []Spec) error {
	names, prefixes, schemes := map[string]bool{}, map[string]string{}, map[string]string{}
	for i := range specs {
		s := &specs[i]
		if s.Invalid != "" {
			continue
		}
		if err := s.Check(); err != nil {
			return fmt.Errorf("upstream server %s: %w", s.Name, err)
		}
		if names[s.Name] {
			return fmt.Errorf("upstream server %s is configured twice", s.Name)
		}
		names[s.Name] = true
		if s.Disabled {
			continue
		}
		if other, ok := prefixes[s.prefix()]; ok {
			return fmt.Errorf("upstream servers %s and %s have the same prefix %q: set prefix for one of them", other,
				s.Name, s.prefix())
		}
		if other, ok := schemes[s.scheme()]; ok {
			return fmt.Errorf("the names of upstream servers %s and %s differ too little to tell their resources apart: rename one", other, s.Name)
		}
		prefixes[s.prefix()], schemes[s.scheme()] = s.Name, s.Name
	}
	return nil
}
