package registry

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"

	"oras.land/oras-go/v2/registry"

	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/internal/address"
)

// Scheme starts references to registries where other addresses are possible too.
const Scheme = "oci://"

// defaultTag is the tag where none is named, as in Docker and ORAS.
const defaultTag = "latest"

// maxReference bounds the text of a reference, in bytes. Registries allow names of 255 characters.
const maxReference = 1 << 10

// Reference names an artifact in a registry. ParseReference makes one.
type Reference struct {
	// Registry is the host in canonical form, with its port if that is not the default.
	Registry   string
	Repository string
	// Tag and Digest may be empty. The digest decides where both are set, and the tag is "latest" where neither is.
	Tag, Digest string
}

// ParseReference parses REGISTRY/REPOSITORY[:TAG][@DIGEST], with or without "oci://" before it. The registry must be a
// host with a dot or a port, an IP address or localhost: no name means Docker Hub by itself.
func ParseReference(text string) (Reference, error) {
	if len(text) > maxReference {
		return Reference{}, fmt.Errorf("a reference to a registry has at most %d bytes", maxReference)
	}
	r, err := parseReference(strings.TrimPrefix(text, Scheme))
	if err != nil {
		return Reference{}, fmt.Errorf(
			"%q is not a registry reference: %w: write %sREGISTRY/NAME:TAG or %[3]sREGISTRY/NAME@sha256:…",
			text, err, Scheme)
	}
	return r, nil
}

func parseReference(text string) (r Reference, err error) {
	host, rest, _ := strings.Cut(text, "/")
	if r.Registry, err = canonicalRegistry(host); err != nil {
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
	return r, nil
}

// canonicalRegistry checks the host of a registry and returns it in canonical form.
func canonicalRegistry(host string) (string, error) {
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
	return name, nil
}

// String returns the reference with "oci://".
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
