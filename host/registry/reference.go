package registry

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"oras.land/oras-go/v2/registry"

	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/internal/address"
)

// Scheme starts references to registries where other addresses are possible too. HasScheme finds it in any case.
const Scheme = "oci://"

// HasScheme reports whether text starts with Scheme, whose case does not matter (RFC 3986, section 3.1).
func HasScheme(text string) bool {
	return len(text) >= len(Scheme) && strings.EqualFold(text[:len(Scheme)], Scheme)
}

// withoutScheme returns text without Scheme.
func withoutScheme(text string) string {
	if HasScheme(text) {
		return text[len(Scheme):]
	}
	return text
}

// Meant returns the reference with Scheme that text most likely stands for, or an empty string: a reference without it,
// or with that of another program.
func Meant(text string) string {
	for _, scheme := range []string{"docker://", "oci:"} {
		if rest, ok := strings.CutPrefix(text, scheme); ok && !HasScheme(text) {
			text = rest
			break
		}
	}
	host, _, below := strings.Cut(text, "/")
	if !below || strings.HasPrefix(host, ".") || strings.HasSuffix(text, ".wasm") || HasScheme(text) {
		return "" // a path
	}
	r, err := ParseReference(text)
	if err != nil {
		return ""
	}
	return r.String()
}

// defaultTag is the tag where none is named, as in Docker and ORAS.
const defaultTag = "latest"

// maxReference bounds the text of a reference, in bytes. Registries allow names of 255 characters.
const maxReference = 1 << 10

// Reference names an artifact in a registry. ParseReference makes one, in canonical form: all spellings of a reference
// have the same Reference, so that rules, settings and credentials for a registry apply to each of them.
type Reference struct {
	// Registry is the host in the form of CanonicalRegistry. Use SameRegistry to compare it with that of a rule.
	Registry string
	// Repository has a namespace at Docker Hub: "library" if none is named, as in Docker.
	Repository string
	// Tag and Digest may be empty. The digest decides where both are set, and the tag is "latest" where neither is.
	Tag, Digest string
}

// ParseReference parses REGISTRY/REPOSITORY[:TAG][@DIGEST], with or without Scheme before it. The registry must be a host
// with a dot or a port, an IP address or localhost: no name means Docker Hub by itself.
func ParseReference(text string) (Reference, error) {
	if len(text) > maxReference {
		return Reference{}, fmt.Errorf("a reference to a registry has at most %d bytes", maxReference)
	}
	r, err := parseReference(withoutScheme(text))
	if err != nil {
		return Reference{}, fmt.Errorf(
			"%q is not a registry reference: %w: write %sREGISTRY/NAME:TAG or %[3]sREGISTRY/NAME@sha256:…",
			text, err, Scheme)
	}
	return r, nil
}

func parseReference(text string) (r Reference, err error) {
	host, rest, _ := strings.Cut(text, "/")
	if r.Registry, err = CanonicalRegistry(host); err != nil {
		return r, err
	}
	rest, digest, hasDigest := strings.Cut(rest, "@")
	repository, tag, hasTag := strings.Cut(rest, ":")
	r.Repository, r.Tag, r.Digest = repository, tag, digest
	named := registry.Reference{Registry: r.Registry, Repository: repository, Reference: tag}
	switch {
	case named.ValidateRepository() != nil:
		return r, errors.New(`the name has lower-case letters, digits, and ".", "_", "-" and "/" between them`)
	case hasTag && named.ValidateReferenceAsTag() != nil:
		return r, errors.New(`a tag has up to 128 letters, digits, ".", "_" and "-"`)
	}
	named.Reference = digest
	if hasDigest && named.ValidateReferenceAsDigest() != nil {
		return r, errors.New("the digest is not sha256: and 64 hexadecimal digits")
	}
	if r.Registry == dockerHub && !strings.Contains(r.Repository, "/") {
		r.Repository = "library/" + r.Repository
	}
	return r, nil
}

// dockerHub is the name of Docker Hub in references.
const dockerHub = "docker.io"

// dockerHubHosts are the hosts that answer for Docker Hub, besides the name in references.
var dockerHubHosts = []string{
	"registry-1.docker.io",     // requests for dockerHub are sent there
	"index.docker.io",          // the name in credentials, and in references of go-containerregistry
	"registry.hub.docker.com",  // the same registry at the host of the web site
	"registry.ipv6.docker.com", // the same registry, by IPv6
}

// CanonicalRegistry checks the host of a registry, with or without a port, and returns it in canonical form: as a
// lower-case ASCII name without trailing dot, or as an IP address, with the port unless that is 443. All hosts of Docker
// Hub become docker.io. Loopback names and addresses stay as they are, because different servers can listen there, and
// so do their ports, because the default depends on whether the registry uses TLS.
func CanonicalRegistry(host string) (string, error) {
	u, err := url.Parse("https://" + host)
	if err != nil || u.Host != host || u.User != nil || strings.HasSuffix(host, ":") {
		return "", errors.New("it does not start with the host of a registry")
	}
	name, err := outbound.CanonicalHost(u.Hostname())
	if err != nil {
		return "", err
	}
	if !strings.ContainsAny(name, ".:") && u.Port() == "" && !address.IsLoopback(name) {
		return "", fmt.Errorf("%q is not a registry host; Docker Hub is docker.io", name)
	}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", fmt.Errorf("there is no port %s", port)
		}
		// Without the default port, all rules for the registry apply. Loopback addresses are reached without TLS.
		if n != 443 || address.IsLoopback(name) || !strings.ContainsAny(name, ".:") {
			return net.JoinHostPort(name, strconv.FormatUint(n, 10)), nil
		}
	}
	if strings.Contains(name, ":") {
		return "[" + name + "]", nil
	}
	if slices.Contains(dockerHubHosts, name) {
		return dockerHub, nil
	}
	return name, nil
}

// SameRegistry reports whether rules treat the registries of two references as one. All names and addresses that mean
// this machine, with the same port, are one registry: "localhost", those below it, every loopback address and the
// unspecified addresses. A server that listens at all addresses answers at each of them.
//
// It is for rules that demand something, such as a signature. What allows something, such as a credential, is for the
// name that the operator has written.
func (r Reference) SameRegistry(other Reference) bool {
	return ruleName(r.Registry) == ruleName(other.Registry)
}

// ruleName returns the name of a registry, in the form of CanonicalRegistry, for SameRegistry.
func ruleName(registry string) string {
	u := url.URL{Host: registry}
	name := u.Hostname()
	a, err := netip.ParseAddr(name)
	switch {
	case !address.IsLocalName(name) && (err != nil || !a.IsUnspecified()):
		return registry
	case u.Port() == "", u.Port() == "80", u.Port() == "443": // the default ports without and with TLS
		return localhost
	}
	return net.JoinHostPort(localhost, u.Port())
}

const localhost = "localhost"

// String returns the reference with Scheme.
func (r Reference) String() string {
	text := Scheme + r.Registry + "/" + r.Repository
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest
	}
	return text
}

// WithDigest returns the reference to what has the digest, with its tag.
func (r Reference) WithDigest(digest string) Reference {
	r.Digest = digest
	return r
}

// Name is the last element of the repository.
func (r Reference) Name() string { return path.Base(r.Repository) }

// object is the digest or the tag, as requests name it.
func (r Reference) object() string { return cmp.Or(r.Digest, r.Tag, defaultTag) }

// CosignTag returns the tag under which cosign before version 3 puts the signatures for a digest.
func CosignTag(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }
