package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

const (
	// maxReferrers bounds the referrers that are read. Anybody who may push to a repository can add some.
	maxReferrers = 64
	// maxListed bounds the referrers that are listed, of which the first with the wanted type are read.
	maxListed = 1024
	// maxReferrerSize bounds the layers of one referrer together, in bytes. A software bill of materials may have
	// megabytes; signatures have kilobytes.
	maxReferrerSize = 8 << 20
)

// Layer is one piece of a small artifact.
type Layer struct {
	MediaType, Digest string
	// Annotations and Content are untrusted.
	Annotations map[string]string
	Content     []byte
}

// Referrer is an artifact that refers to another one, such as a signature.
type Referrer struct {
	// Digest is the digest of its OCI manifest.
	Digest, ArtifactType string
	Annotations          map[string]string
	Layers               []Layer
}

// Referrers returns what refers to r, which has a digest, with the artifact type; an empty one means all. Registries
// without the API for referrers list them under a tag, which is read too. The types are those in the manifests, because
// not every registry lists them as they are; those that are listed with the type are read first, those that are listed
// with another one last.
//
// Whoever may push to the repository can add referrers, so one that is broken does not hide the others: unread says
// which could not be read and why, and that there are more than are read.
func (c *Client) Referrers(ctx context.Context, r Reference, artifactType string) (referrers []Referrer, unread []error,
	err error) {
	if r.Digest == "" {
		return nil, nil, errNoDigest(r)
	}
	rank := func(d ocispec.Descriptor) int {
		switch d.ArtifactType {
		case artifactType:
			return 0
		case "", ocispec.MediaTypeEmptyJSON: // the config's type is listed in place of the artifact's
			return 1
		}
		return 2
	}
	mirrored := false // a mirror answered with an empty list
	err = c.read(ctx, r, func(ctx context.Context, repository *remote.Repository) error {
		found, more, err := listReferrers(ctx, repository, digest.Digest(r.Digest))
		if err != nil {
			return err
		}
		if len(found) == 0 && repository.Reference.Registry != r.Registry {
			mirrored = true
			return errNoReferrers
		}
		slices.SortStableFunc(found, func(a, b ocispec.Descriptor) int { return cmp.Compare(rank(a), rank(b)) })
		referrers, unread = nil, nil
		for _, d := range found[:min(len(found), maxReferrers)] {
			referrer, err := c.referrer(ctx, repository, d, artifactType)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				unread = append(unread, c.readable("the referrer "+d.Digest.String(), r, err))
			case referrer != nil:
				referrers = append(referrers, *referrer)
			}
		}
		if len(unread) > 0 && repository.Reference.Registry != r.Registry {
			return errors.Join(unread...) // what a mirror has broken may be intact in the registry
		}
		if more || len(found) > maxReferrers {
			unread = append(unread,
				fmt.Errorf("more than %d artifacts refer to it, and hako reads no more: ask who may push to "+
					"the repository to remove those that are not needed", maxReferrers))
		}
		return nil
	})
	if err != nil && mirrored {
		return nil, []error{err}, nil
	}
	return referrers, unread, err
}

// errNoReferrers makes the next source answer: not every mirror copies referrers.
var errNoReferrers = errors.New("it lists none")

// errEnough ends a list.
var errEnough = errors.New("enough")

// listReferrers returns the first referrers of a manifest, and whether there are more.
func listReferrers(ctx context.Context, repository *remote.Repository,
	subject digest.Digest) (found []ocispec.Descriptor,
	more bool, err error) {
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: subject}
	err = repository.Referrers(ctx, d, "", func(page []ocispec.Descriptor) error {
		if found = append(found, page...); len(found) > maxListed {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return found[:maxListed], true, nil
	}
	return found, false, err
}

// referrer reads a referrer. It returns nil if its type is another than artifactType, unless that is empty.
func (c *Client) referrer(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor,
	artifactType string) (*Referrer, error) {
	_, m, err := c.manifestOf(ctx, repository, d.Digest.String())
	if err != nil {
		return nil, err
	}
	actual := cmp.Or(m.ArtifactType, m.Config.MediaType)
	if artifactType != "" && artifactType != actual {
		return nil, nil
	}
	layers, err := c.layersOf(ctx, repository, m)
	return &Referrer{d.Digest.String(), actual, m.Annotations, layers}, err
}

func errNoDigest(r Reference) error {
	return fmt.Errorf("%s: referrers belong to a digest, not to a tag", r)
}

// Layers returns the layers of a small artifact, such as a signature under a tag or an index of plugins: all of them
// together at most 8 MiB. The digests are checked.
func (c *Client) Layers(ctx context.Context, r Reference) (layers []Layer, err error) {
	err = c.read(ctx, r, func(ctx context.Context, repository *remote.Repository) error {
		_, m, err := c.manifestOf(ctx, repository, r.object())
		if err == nil {
			layers, err = c.layersOf(ctx, repository, m)
		}
		return err
	})
	return layers, err
}

func (c *Client) layersOf(ctx context.Context, repository *remote.Repository, m document) (layers []Layer, err error) {
	if m.Manifests != nil {
		return nil, errors.New("it is an index, and not an artifact with layers")
	}
	left := int64(maxReferrerSize)
	for _, d := range m.Layers {
		blob, err := c.blob(ctx, repository, d, left)
		if err != nil {
			return nil, err
		}
		left -= d.Size
		layers = append(layers, Layer{d.MediaType, d.Digest.String(), d.Annotations, blob})
	}
	return layers, nil
}

// Attach pushes an artifact of one layer that refers to r, which has a digest. Registries without the API for referrers
// get a tag that lists them.
func (c *Client) Attach(ctx context.Context, r Reference, artifactType string, blob []byte, mediaType string,
	annotations map[string]string) error {
	if r.Digest == "" {
		return errNoDigest(r)
	}
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	subject, err := c.repository(r).Resolve(ctx, r.Digest)
	if err != nil {
		return c.readable(r.String(), r, err)
	}
	empty := ocispec.DescriptorEmptyJSON
	config := empty.Data
	empty.Data = nil
	m, err := json.Marshal(ocispec.Manifest{
		Versioned: version2, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType, Config: empty, Subject: &subject,
		Layers:      []ocispec.Descriptor{content.NewDescriptorFromBytes(mediaType, blob)},
		Annotations: annotations,
	})
	if err != nil {
		return err
	}
	_, err = c.publish(ctx, r, "", m, config, blob)
	return err
}
