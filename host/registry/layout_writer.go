package registry

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
)

// LayoutWriter writes an OCI layout as a tar file. The same content makes the same bytes. Close completes it.
type LayoutWriter struct {
	archive *tar.Writer
	blobs   map[digest.Digest]bool
	index   []ocispec.Descriptor
}

// NewLayoutWriter returns a writer of a layout to w.
func NewLayoutWriter(w io.Writer) *LayoutWriter {
	return &LayoutWriter{archive: tar.NewWriter(w), blobs: map[digest.Digest]bool{}}
}

// Close writes the index. It does not close the writer below.
func (l *LayoutWriter) Close() error {
	index := ocispec.Index{Versioned: version2, MediaType: ocispec.MediaTypeImageIndex, Manifests: l.index}
	text, err := json.Marshal(index)
	return errors.Join(err, l.file(ocispec.ImageIndexFile, text),
		l.file(ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`)), l.archive.Close())
}

func (l *LayoutWriter) file(name string, data []byte) error {
	err := l.archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR})
	if err != nil {
		return err
	}
	_, err = l.archive.Write(data)
	return err
}

// blob writes a blob, once.
func (l *LayoutWriter) blob(data []byte) error {
	d := digest.FromBytes(data)
	if l.blobs[d] {
		return nil
	}
	l.blobs[d] = true
	return l.file(path.Join(ocispec.ImageBlobsDir, string(d.Algorithm()), d.Encoded()), data)
}

// manifest writes a manifest and lists it in the index under a name, unless that is empty.
func (l *LayoutWriter) manifest(name string, text []byte) error {
	d := content.NewDescriptorFromBytes(mediaTypeOf(text), text)
	if name != "" {
		d.Annotations = map[string]string{ocispec.AnnotationRefName: name}
	}
	l.index = append(l.index, d)
	return l.blob(text)
}

// AddFile adds a plugin's file as the artifact that Push makes of it, under the name of the plugin.
func (l *LayoutWriter) AddFile(name string, wasm []byte) error {
	m, config, err := describe(Reference{Repository: name}, &Artifact{Wasm: wasm})
	if err != nil {
		return err
	}
	return errors.Join(l.manifest(name, m), l.blob(config), l.blob(wasm))
}

// AddArtifact copies the artifact that r names, and what refers to it, from its registry, under the name of the plugin.
// Of an index it copies the platform that Pull chooses. leftOut says which of the referrers could not be read.
func (l *LayoutWriter) AddArtifact(ctx context.Context, c *Client, name string,
	r Reference) (leftOut []error, err error) {
	if r.Digest == "" {
		return nil, errNoDigest(r)
	}
	referrers, unread, err := c.Referrers(ctx, r, "")
	if err != nil {
		return nil, err
	}
	err = c.read(ctx, r, func(ctx context.Context, repository *remote.Repository) error {
		if err := l.copy(ctx, c, repository, name, r.Digest, false); err != nil {
			return err
		}
		leftOut = slices.Clone(unread)
		for _, referrer := range referrers {
			err := l.copy(ctx, c, repository, "", referrer.Digest, false)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				leftOut = append(leftOut, c.readable("the referrer "+referrer.Digest, r, err))
			}
		}
		tag := CosignTag(r.Digest)
		if err := l.copy(ctx, c, repository, tag, tag, false); !errors.Is(err, errdef.ErrNotFound) {
			return err
		}
		return nil
	})
	return leftOut, err
}

// copy copies an artifact. inIndex reports whether it is one of the platforms of an index.
func (l *LayoutWriter) copy(ctx context.Context, c *Client, repository *remote.Repository, name, object string,
	inIndex bool) error {
	_, m, err := c.manifestOf(ctx, repository, object)
	if err != nil {
		return err
	}
	switch {
	case m.Manifests != nil && inIndex:
		return errNestedIndex
	case m.Manifests != nil:
		platform, err := choosePlatform(m.Manifests)
		if err == nil {
			err = l.copy(ctx, c, repository, "", platform.Digest.String(), true)
		}
		return errors.Join(err, l.manifest(name, m.text))
	}
	left := maxTarFactor * c.options.MaxSize
	for _, d := range slices.Concat(m.Layers, []ocispec.Descriptor{m.Config}) {
		if l.blobs[d.Digest] || strings.HasPrefix(d.MediaType, ocispec.MediaTypeEmptyJSON) && len(d.Data) > 0 {
			continue
		}
		blob, err := c.blob(ctx, repository, d, min(left, c.options.MaxSize))
		if err != nil {
			return err
		}
		left -= d.Size
		if err := l.blob(blob); err != nil {
			return err
		}
	}
	return l.manifest(name, m.text)
}
