package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/strictyaml"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// ReadFile reads the servers of a configuration file in the common form of MCP clients: JSON or YAML with an object
// "mcpServers", or "servers" as in VS Code (docs/upstreams.md). JSON may have comments. Other top-level keys belong to
// other programs and are ignored, except for "inputs". An unknown key of a server makes its entry invalid: it suggests
// the nearest known key. The result includes disabled servers, and invalid ones if there are others; if there are none,
// ReadFile returns their errors. Relative paths of secrets start at dir.
func ReadFile(path, dir string) ([]Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("upstream servers: %w", err)
	}
	specs, err := parse(data, dir, filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("upstream servers: %w", err)
	}
	return specs, nil
}

// followEvery is the interval at which Follow checks its file.
const followEvery = time.Second

// Follow reads the file every second until ctx ends, and applies each version that it finds. It logs the errors of a
// version once, and keeps the servers as they were.
func (u *Upstreams) Follow(ctx context.Context, path, dir string) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for before := (stamp{size: -1}); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := fileStamp(path)
		if now == before {
			continue
		}
		before = now
		specs, err := ReadFile(path, dir)
		changed := false
		if err == nil {
			changed, err = u.apply(specs)
		}
		if err != nil {
			u.options.Logger.Error("the configuration of upstream servers is invalid: the previous one stays in force",
				"err", err)
		} else if changed {
			u.options.Logger.Info("a new configuration of upstream servers is in force", "file", path)
		}
	}
}

// stamp identifies a version of a file.
type stamp struct {
	modified time.Time
	size     int64
}

func fileStamp(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// located adds the file to each problem.
func located(err error, file string) error {
	var list *strictyaml.Error
	if !errors.As(err, &list) {
		return fmt.Errorf("%s: %w", file, err)
	}
	var lines []string
	for _, p := range list.Problems {
		separator := ":"
		if p.Column == 0 {
			separator = ": "
		}
		lines = append(lines, file+separator+p.String())
	}
	if list.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", list.Omitted))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// parse reads the servers and checks the rules across them. A server whose entry is invalid has Invalid set, unless
// there is no other: then the file is.
func parse(data []byte, dir, file string) ([]Spec, error) {
	var specs []Spec
	known, usable := []string{}, 0
	r := reader{dir, map[string]string{}}
	var servers, others func()
	var invalid []error
	list := func(v strictyaml.Value) func() {
		return func() {
			v.Map(func(name string, v strictyaml.Value) {
				var spec Spec
				err := v.Apart(func(v strictyaml.Value) {
					spec = r.server(name, v)
					if err := spec.Check(); err != nil {
						v.Problem("%v", err)
					}
				})
				if err != nil {
					err = located(err, file)
					invalid = append(invalid, err)
					spec = Spec{Name: name, Disabled: spec.Disabled, Invalid: err.Error()}
				} else {
					usable++
				}
				specs = append(specs, spec)
			})
		}
	}
	err := strictyaml.Read(withoutComments(data), maxFile, func(v strictyaml.Value) {
		v.Map(func(key string, v strictyaml.Value) {
			switch known = append(known, key); key {
			case "mcpServers":
				servers = list(v)
			case "servers":
				others = list(v)
			case "inputs":
				readInputs(r.inputs)(v)
			}
		})
		if servers == nil {
			servers = others // the name in VS Code
		}
		if servers != nil {
			servers()
		}
	}, nil)
	switch {
	case err != nil:
		return nil, located(err, file)
	case servers == nil:
		if near := strictyaml.Nearest("mcpServers", known); near != "" {
			return nil, fmt.Errorf("%s: mcpServers is missing: is %q a misspelling of it?", file, near)
		}
		return nil, fmt.Errorf(`%s: mcpServers is missing: write {"mcpServers": {}} for none`, file)
	case usable == 0 && len(invalid) > 0:
		return nil, errors.Join(invalid...)
	}
	if err := checkSet(specs); err != nil {
		return nil, located(err, file)
	}
	return specs, nil
}

// reader reads servers. Relative paths of secrets start at dir. inputs has the values of ${input:ID}.
type reader struct {
	dir    string
	inputs map[string]string
}

func (r reader) server(name string, v strictyaml.Value) Spec {
	s := Spec{Name: name}
	transport, enabled, asks, start := "", true, "", ""
	approvals := s.noted("the policy decides which calls need an approval (docs/policy.md)")
	v.Object(whereSet(strictyaml.Fields{
		"name":      isKey(name),
		"transport": strictyaml.String(&transport), "type": strictyaml.String(&transport),
		"command": r.text(&s.Command), "args": r.texts(&s.Args), "env": r.values(&s.Env),
		"cwd": r.text(&s.Dir),
		"url": r.address(&s.URL), "serverUrl": r.address(&s.URL), "httpUrl": r.address(&s.URL),
		"headers":    r.values(&s.Headers),
		"credential": strictyaml.String(&s.Credential), "tls": s.TLS.read,
		"disabled": strictyaml.Bool(&s.Disabled), "enabled": strictyaml.Bool(&enabled),
		"prefix": strictyaml.String(&s.Prefix), "protocolVersion": strictyaml.String(&s.ProtocolVersion),
		"startTimeout": strictyaml.Duration(&s.StartTimeout), "timeout": seconds(&s.Limits.Time),
		"start": strictyaml.String(&start), "idleTimeout": strictyaml.Duration(&s.IdleTimeout),
		"tools": s.Tools.read, "includeTools": patterns(&s.Tools.Allow), "excludeTools": patterns(&s.Tools.Deny),
		"disabledTools": patterns(&s.Tools.Deny), "trustAnnotations": strictyaml.Bool(&s.TrustAnnotations),
		"elicitation": strictyaml.String(&asks), "limits": readLimits(&s.Limits),
		"description": strictyaml.Ignore, "gallery": strictyaml.Ignore, "version": strictyaml.Ignore,
		"autoApprove": approvals, "alwaysAllow": approvals, "trust": approvals,
		"envFile":       refused("name the variables in env; a value can be {\"file\": PATH}"),
		"headersHelper": refused("name the headers; a value can be {\"command\": [PROGRAM, ARGUMENT]}"),
		"oauth":         refused("name a credential (docs/credentials.md)"),
		"auth":          refused("name a credential (docs/credentials.md)"),
	}))
	s.Disabled, s.Elicitation = s.Disabled || !enabled, Elicitation(asks)
	s.Start = Start(start)
	if err := checkTransport(transport, &s); err != nil {
		v.Problem("%v", err)
	}
	return s
}

// whereSet skips the keys without a value: programs that write out their own type have a "url" in the entry of a
// command too.
func whereSet(fields strictyaml.Fields) strictyaml.Fields {
	for key, read := range fields {
		fields[key] = func(v strictyaml.Value) {
			if !v.IsUnset() {
				read(v)
			}
		}
	}
	return fields
}

// isKey reads the name of a server, which its key says already.
func isKey(name string) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		if text, ok := v.Text(); ok && text != name {
			v.Problem("must be %q, the key of the entry, or be left out", name)
		}
	}
}

// checkTransport checks a named transport against the other keys.
func checkTransport(transport string, s *Spec) error {
	switch transport {
	case "":
		return nil
	case "stdio", "local":
		if s.Command == "" {
			return errors.New("transport stdio needs a command")
		}
		return nil
	case "http", "streamable-http", "streamable_http", "streamableHttp":
		if s.URL == "" {
			return errors.New("transport http needs a url")
		}
		return nil
	case "sse":
		return errors.New("transport sse is that of MCP 2024-11-05 and is not supported: " +
			"use the server's streamable HTTP address and transport http")
	}
	return fmt.Errorf("transport %s", strictyaml.Unknown("transport", transport, []string{"stdio", "http"}))
}

// texts reads a list of strings, which may be empty: arguments can be. Numbers count as they are written.
func (r reader) texts(dst *[]string) func(strictyaml.Value) {
	return strictyaml.List(dst, func(v strictyaml.Value, s *string) {
		text, ok := v.Scalar()
		if !ok {
			_, _ = v.Text() // reports it
		}
		*s = r.fill(v, text)
	})
}

// values reads strings or references to secrets, by name. Numbers and booleans count as they are written, and null as a
// name that is not there.
func (r reader) values(dst *map[string]Value) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		*dst = map[string]Value{}
		v.Map(func(name string, v strictyaml.Value) {
			var value Value
			if text, ok := v.Scalar(); ok {
				value.Text = r.fill(v, text)
			} else if v.IsUnset() {
				return
			} else {
				r.secret(&value.Secret, v)
			}
			(*dst)[name] = value
		})
	}
}

func (r reader) secret(dst *secret.Source, v strictyaml.Value) {
	v.Object(strictyaml.Fields{
		"env": strictyaml.String(&dst.Env), "file": strictyaml.String(&dst.File),
		"command": strictyaml.Strings(&dst.Command),
	})
	if dst.File != "" {
		dst.File = from(r.dir, dst.File)
	}
	if err := dst.Check(); err != nil {
		v.Problem(
			"must be a text, or say where a secret is: {env: NAME}, {file: PATH} or {command: [PROGRAM, ARGUMENT]}")
	}
}

func (t *TLS) read(v strictyaml.Value) {
	v.Object(strictyaml.Fields{"ca": strictyaml.String(&t.CA), "cert": strictyaml.String(&t.Cert),
		"key": strictyaml.String(&t.Key)})
}

func (f *Filter) read(v strictyaml.Value) {
	if v.IsList() { // as Copilot writes those to offer
		patterns(&f.Allow)(v)
		return
	}
	v.Object(strictyaml.Fields{"allow": strictyaml.Strings(&f.Allow), "deny": strictyaml.Strings(&f.Deny)})
}

// readLimits reads the limits that apply to servers.
func readLimits(l *manifest.Limits) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		v.Object(strictyaml.Fields{
			"time": strictyaml.Duration(&l.Time), "input": strictyaml.Size(&l.Input),
			"output":      strictyaml.Size(&l.Output),
			"concurrency": strictyaml.Count(&l.Concurrency), "queue": strictyaml.Count(&l.Queue),
			"queueWait": strictyaml.Duration(&l.QueueWait), "rate": strictyaml.Count(&l.Rate),
		})
	}
}

// seconds reads a duration, or a number of seconds as other programs write it.
func seconds(dst *time.Duration) func(strictyaml.Value) {
	return func(v strictyaml.Value) {
		if v.IsText() {
			strictyaml.Duration(dst)(v)
			return
		}
		var n int
		strictyaml.Count(&n)(v)
		*dst = time.Duration(n) * time.Second
	}
}
