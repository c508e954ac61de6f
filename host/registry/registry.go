// Package registry moves plugins between hako and OCI registries: it resolves, pulls and pushes artifacts, lists tags,
// and reads and attaches referrers such as signatures. It wraps oras-go; no other package imports that.
//
// Pull reads what hako, wkg, wassette and ORAS push (a layer with the Wasm file) and images with a .wasm file in a
// layer's tar, as hyper-mcp's plugins are published. Push writes an artifact that all of these can read.
//
// Everything that a registry answers is untrusted. Sizes are bounded before and while reading, digests are checked, and
// redirects lead only to https and never carry credentials to another host.
package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/address"
)

const (
	// maxMetadata bounds each manifest, index, config and list of tags, in bytes. Registries accept manifests of 4 MiB.
	maxMetadata = 4 << 20
	// maxPages bounds the pages of a list.
	maxPages = 20
	// transferTime bounds one operation.
	transferTime = 5 * time.Minute
	// responseTime bounds the wait for the header of a response.
	responseTime = time.Minute
)

// Options configures a Client.
type Options struct {
	// Proxy is for all connections but those to this machine. Nil means none.
	Proxy *url.URL
	// Registries are settings for single registries, by host and port. Each spelling that CanonicalRegistry makes one
	// means the same registry, which may have settings only once.
	Registries map[string]Host
	// MaxSize bounds a plugin, in bytes. Zero means manifest.MaxModuleBytes.
	MaxSize int64
	// Public is for people who may not reach the operator's network or use the operator's credentials through hako:
	// registries that are neither in Registries nor mirrors there are reached without credentials and at public
	// addresses only.
	Public bool
	// AuthFiles hold credentials in the form of Docker's config.json, which Podman and Buildah share, and name
	// credential helpers. The first that knows a registry counts; files that do not exist are skipped.
	AuthFiles []string
}

// Host is the settings for one registry.
type Host struct {
	// Mirrors are asked before the registry for what is read: hosts, or hosts with a path that is put before the
	// repository. A mirror may answer any tag with what it likes; a digest in the reference prevents that.
	Mirrors []string
	// CA is a PEM file with certificates that are trusted for this registry besides those of the system.
	CA string
	// TokenServers are hosts besides those of the registry's own site (the same registered domain) that may get the
	// operator's credential, if the registry names them as the server that gives tokens: HOST or HOST:PORT.
	TokenServers []string
}

// Check reports what is wrong with the settings for the registry host.
func (h Host) Check(host string) error {
	if _, err := CanonicalRegistry(host); err != nil {
		return fmt.Errorf("%q is not a registry host, such as registry.example.com or localhost:5000", host)
	}
	for _, mirror := range h.Mirrors {
		if _, err := mirrored(mirror, "x"); err != nil {
			return fmt.Errorf("the mirror %q is neither HOST nor HOST/PATH", mirror)
		}
	}
	for _, server := range h.TokenServers {
		if err := checkTokenServer(server); err != nil {
			return err
		}
	}
	return nil
}

// mirrored returns where a mirror has a repository.
func mirrored(mirror, repository string) (Reference, error) {
	return parseReference(strings.TrimSuffix(mirror, "/") + "/" + repository)
}

// Client is a client for any number of registries. It is safe for concurrent use.
type Client struct {
	options Options
	// mirrors, roots and tokenServers are by registry, in the form of CanonicalRegistry.
	mirrors      map[string][]string
	roots        map[string]*x509.CertPool
	tokenServers map[string][]string
	// configured are the registries in Options.Registries and their mirrors.
	configured map[string]bool
	retryDelay time.Duration
	// layout answers instead of registries, unless it is nil.
	layout *Layout

	mu sync.Mutex
	// clients are by host. They keep connections and tokens.
	clients map[string]*auth.Client // guarded by mu
	// logins are the transports of clients.
	logins []*loginTransport // guarded by mu
}

// New returns a Client. It fails if the settings of a registry are wrong or its certificates cannot be read.
func New(options Options) (*Client, error) {
	options.MaxSize = cmp.Or(options.MaxSize, manifest.MaxModuleBytes)
	c := &Client{options: options, mirrors: map[string][]string{}, roots: map[string]*x509.CertPool{}, tokenServers: map[string][]string{},
		configured: map[string]bool{}, retryDelay: time.Second, clients: map[string]*auth.Client{}}
	named := map[string]bool{}
	for text, settings := range options.Registries {
		if err := settings.Check(text); err != nil {
			return nil, err
		}
		host, _ := CanonicalRegistry(text)
		if named[host] {
			return nil, fmt.Errorf("the registry %s has settings under two names: keep one of them", host)
		}
		named[host], c.configured[host], c.mirrors[host] = true, true, settings.Mirrors
		c.tokenServers[host] = settings.TokenServers
		for _, mirror := range settings.Mirrors {
			at, _ := mirrored(mirror, "x")
			c.configured[at.Registry] = true
		}
		if settings.CA == "" {
			continue
		}
		roots, err := readRoots(settings.CA)
		if err != nil {
			return nil, fmt.Errorf("certificates for the registry %s: %w", host, err)
		}
		c.roots[host] = roots
	}
	return c, nil
}

func readRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate in PEM form", file)
	}
	return roots, nil
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		client.Client.CloseIdleConnections()
	}
}

// repository returns the repository of a reference.
func (c *Client) repository(r Reference) *remote.Repository {
	_, hasRoots := c.roots[r.Registry]
	return &remote.Repository{
		Client:               c.client(r.Registry),
		Reference:            registry.Reference{Registry: r.Registry, Repository: r.Repository},
		PlainHTTP:            isLoopback(r.Registry) && !hasRoots,
		MaxMetadataBytes:     maxMetadata,
		TagListMaxPages:      maxPages,
		ReferrerListMaxPages: maxPages,
		SkipReferrersGC:      true, // few registries let everybody delete
	}
}

// isLoopback reports whether a registry is on this machine, where no certificates are needed.
func isLoopback(host string) bool { return address.IsLoopback((&url.URL{Host: host}).Hostname()) }

// client returns the HTTP client for a registry.
func (c *Client) client(host string) *auth.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client, ok := c.clients[host]; ok {
		return client
	}
	if c.layout != nil {
		return &auth.Client{Client: &http.Client{Transport: c.layout}}
	}
	restricted := c.options.Public && !c.configured[host]
	transport := outbound.NewTransport(c.options.Proxy)
	if restricted {
		transport = outbound.NewPublicTransport(c.options.Proxy)
	}
	transport.MaxResponseHeaderBytes, transport.ResponseHeaderTimeout = 64<<10, responseTime
	if roots := c.roots[host]; roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	login := &loginTransport{base: transport, registry: host, tokenServers: c.tokenServers[host]}
	client := &auth.Client{
		Client: &http.Client{
			Transport: &retry.Transport{
				Base:   login,
				Policy: func() retry.Policy { return retryPolicy{c.retryDelay} },
			},
			CheckRedirect: checkRedirect,
		},
		Header:   http.Header{"User-Agent": {"hako"}},
		Cache:    auth.NewCache(),
		ClientID: "hako",
	}
	if !restricted {
		client.Credential = credentialsFrom(c.options.AuthFiles)
	}
	c.clients[host], c.logins = client, append(c.logins, login)
	return client
}

// maxRedirects is enough for a registry that stores layers elsewhere.
const maxRedirects = 5

// checkRedirect refuses redirects to connections on which others can read or change what is sent. The auth client
// removes credentials when a redirect leaves the host.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return errors.New("it redirects too many times")
	case r.URL.Scheme == "https", address.IsConfidential(r.URL) && address.IsConfidential(first) &&
		first.Scheme == "http":
		return nil
	}
	return fmt.Errorf("it redirects to %s://%s, which is not https", r.URL.Scheme, r.URL.Host)
}

// Resolve returns the digest that the reference's tag has now, as the registry says. Pull checks it.
func (c *Client) Resolve(ctx context.Context, r Reference) (digest string, err error) {
	if r.Digest != "" {
		return r.Digest, nil
	}
	err = c.read(ctx, r, func(ctx context.Context, repository *remote.Repository) error {
		descriptor, err := repository.Resolve(ctx, r.object())
		digest = descriptor.Digest.String()
		return err
	})
	return digest, err
}

// Published is Resolve at the registry itself, whatever its mirrors say.
func (c *Client) Published(ctx context.Context, r Reference) (digest string, err error) {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	descriptor, err := c.repository(r).Resolve(ctx, r.object())
	if err != nil {
		return "", c.readable(r.String(), r, err)
	}
	return descriptor.Digest.String(), nil
}

// maxTags bounds the tags of a repository.
const maxTags = 10_000

// Tags returns the tags of the reference's repository.
func (c *Client) Tags(ctx context.Context, r Reference) (tags []string, err error) {
	err = c.read(ctx, r, func(ctx context.Context, repository *remote.Repository) error {
		tags = nil
		return repository.Tags(ctx, "", func(page []string) error {
			for _, tag := range page {
				if (registry.Reference{Reference: tag}).ValidateReferenceAsTag() != nil {
					return fmt.Errorf("it lists the invalid tag %q", tag)
				}
			}
			if tags = append(tags, page...); len(tags) > maxTags {
				return fmt.Errorf("it has more than %d tags", maxTags)
			}
			return nil
		})
	})
	return tags, err
}

// read runs an operation that reads at the registry's mirrors, and at the registry if they all fail. Then the error
// matches that of the registry: what a mirror does not have may be there.
func (c *Client) read(ctx context.Context, r Reference,
	operation func(context.Context, *remote.Repository) error) error {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	var failures []error
	for _, mirror := range c.mirrors[r.Registry] {
		at, err := mirrored(mirror, r.Repository)
		if err == nil {
			err = operation(ctx, c.repository(at))
		}
		if err == nil {
			return nil
		}
		failures = append(failures, c.readable("mirror "+mirror, at, err))
		if ctx.Err() != nil {
			return fmt.Errorf("%v\n%w", errors.Join(failures...), ctx.Err())
		}
	}
	err := operation(ctx, c.repository(r))
	if err == nil {
		return nil
	}
	if err = c.readable(r.String(), r, err); len(failures) > 0 {
		err = fmt.Errorf("%v\n%w", errors.Join(failures...), err)
	}
	return err
}
