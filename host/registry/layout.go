package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/hako-run/hako/internal/clip"
)

// Layout is an OCI image layout on this machine, in a directory or a tar file. OpenLayout opens one. Nothing in it is
// trusted: what is read is compared with its digest, and only names that are digests are opened.
type Layout struct {
	storage *oci.ReadOnlyStorage
	index   document
	maxSize int64

	mu sync.Mutex
	// bySubject are the artifacts that refer to others, by what they refer to. It is nil until somebody asks.
	bySubject map[digest.Digest][]ocispec.Descriptor // guarded by mu
}

// OpenLayout opens the layout at path, whose plugins have at most maxSize bytes.
func OpenLayout(path string, maxSize int64) (*Layout, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	l := &Layout{maxSize: maxSize}
	var index []byte
	if info.IsDir() {
		root := regularFiles{os.DirFS(path)}
		l.storage = oci.NewStorageFromFS(root)
		file, openErr := root.Open(ocispec.ImageIndexFile)
		if err = openErr; err == nil {
			defer file.Close()
			index, err = readAtMost(file, maxMetadata)
		}
	} else if !info.Mode().IsRegular() {
		err = errNotRegular
	} else if l.storage, err = oci.NewStorageFromTar(path); err == nil {
		index, err = readTarFile(path, ocispec.ImageIndexFile)
	}
	if err == nil {
		l.index, err = parseIndex(index)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not an OCI layout, such as hako plugin bundle writes: %w", path, err)
	}
	return l, nil
}

var errNotRegular = errors.New("it is not a regular file")

// regularFiles opens regular files and folders only: a pipe would be waited for, and a device read without end.
type regularFiles struct{ fs.FS }

func (r regularFiles) Open(name string) (fs.File, error) {
	info, err := fs.Stat(r.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return r.FS.Open(name)
}

// maxIndex bounds the entries of a layout's index.
const maxIndex = 10_000

func parseIndex(text []byte) (index document, err error) {
	if err := json.Unmarshal(text, &index); err != nil {
		return index, errors.New("its index is not JSON as OCI defines it")
	}
	if len(index.Manifests) > maxIndex {
		return index, fmt.Errorf("its index lists more than %d artifacts", maxIndex)
	}
	for _, d := range index.Manifests {
		if d.Digest.Validate() != nil {
			return index, errors.New("its index has an invalid digest")
		}
	}
	return index, nil
}

// readTarFile returns the content of a file in a tar.
func readTarFile(archive, name string) ([]byte, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it has no %s", name)
		}
		if err != nil {
			return nil, err
		}
		if path.Clean(header.Name) == name && header.Typeflag == tar.TypeReg {
			return readAtMost(r, maxMetadata)
		}
	}
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLarge("a file in it", limit)
	}
	return data, err
}

// Blob returns the content with the digest. It matches ErrNotFound if the layout does not have it.
func (l *Layout) Blob(ctx context.Context, d string) ([]byte, error) {
	return l.blob(ctx, digest.Digest(d), l.maxSize)
}

func (l *Layout) blob(ctx context.Context, d digest.Digest, limit int64) ([]byte, error) {
	if d.Validate() != nil {
		return nil, fmt.Errorf("%s: %w", d, ErrNotFound)
	}
	file, err := l.storage.Fetch(ctx, ocispec.Descriptor{Digest: d})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, errors.Join(ErrNotFound, err))
	}
	defer file.Close()
	blob, err := readAtMost(file, limit)
	if err == nil && d.Algorithm().FromBytes(blob) != d {
		err = fmt.Errorf("%s: the layout has other content under this digest", d)
	}
	return blob, err
}

// Client returns a client for which every registry is this layout. It uses no network. Artifacts are found by digest.
func (l *Layout) Client() *Client {
	return &Client{options: Options{MaxSize: l.maxSize}, layout: l, retryDelay: time.Millisecond}
}

// RoundTrip answers requests of the OCI distribution API that read manifests, blobs and referrers.
func (l *Layout) RoundTrip(r *http.Request) (*http.Response, error) {
	mediaType, body, err := l.answer(r)
	status := http.StatusOK
	switch {
	case errors.Is(err, ErrNotFound):
		status = http.StatusNotFound
	case err != nil:
		return nil, err
	}
	response := &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: http.Header{"Content-Type": {mediaType}}, ContentLength: int64(len(body)), Request: r,
		Body: io.NopCloser(bytes.NewReader(body))}
	if r.Method == http.MethodHead {
		response.Body = http.NoBody
	}
	return response, nil
}

func (l *Layout) answer(r *http.Request) (mediaType string, body []byte, err error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "", nil, errors.New("a layout is only read")
	}
	folder, object := path.Split(r.URL.Path)
	switch path.Base(folder) {
	case "manifests":
		body, err = l.blob(r.Context(), l.resolve(object), maxMetadata)
		return mediaTypeOf(body), body, err
	case "blobs":
		body, err = l.blob(r.Context(), digest.Digest(object), l.maxSize)
		return "application/octet-stream", body, err
	case "referrers":
		body, err = l.referrers(r.Context(), digest.Digest(object))
		return ocispec.MediaTypeImageIndex, body, err
	}
	return "", nil, ErrNotFound
}

// resolve returns the digest of a tag in the index. It returns digests and unknown tags as they are.
func (l *Layout) resolve(object string) digest.Digest {
	i := slices.IndexFunc(l.index.Manifests, func(d ocispec.Descriptor) bool {
		return d.Annotations[ocispec.AnnotationRefName] == object
	})
	if i < 0 {
		return digest.Digest(object)
	}
	return l.index.Manifests[i].Digest
}

// mediaTypeOf returns the media type that a manifest states.
func mediaTypeOf(text []byte) string {
	m := struct {
		MediaType string `json:"mediaType"`
	}{ocispec.MediaTypeImageManifest}
	_ = json.Unmarshal(text, &m) // the reader of the manifest reports what is wrong with it
	return m.MediaType
}

// referrers returns an index of the artifacts that refer to a digest.
func (l *Layout) referrers(ctx context.Context, subject digest.Digest) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySubject == nil {
		bySubject, err := l.readSubjects(ctx)
		if err != nil {
			return nil, err
		}
		l.bySubject = bySubject
	}
	index := ocispec.Index{Versioned: version2, MediaType: ocispec.MediaTypeImageIndex, Manifests: l.bySubject[subject]}
	if index.Manifests == nil {
		index.Manifests = []ocispec.Descriptor{}
	}
	return json.Marshal(index)
}

// maxListedType bounds the type of an artifact in a list, in characters. Referrers compares the one in the artifact.
const maxListedType = 255

// readSubjects reads each artifact of the layout once, also one that the index lists often.
func (l *Layout) readSubjects(ctx context.Context) (map[digest.Digest][]ocispec.Descriptor, error) {
	bySubject, seen := map[digest.Digest][]ocispec.Descriptor{}, map[digest.Digest]bool{}
	for _, listed := range l.index.Manifests {
		if seen[listed.Digest] {
			continue
		}
		seen[listed.Digest] = true
		text, err := l.blob(ctx, listed.Digest, maxMetadata)
		if err != nil {
			// No %w: the list itself is there.
			return nil, fmt.Errorf("an artifact that the layout lists cannot be read: %v", err)
		}
		var m ocispec.Manifest
		if json.Unmarshal(text, &m) == nil && m.Subject != nil {
			d := content.NewDescriptorFromBytes(mediaTypeOf(text), text)
			d.ArtifactType = clip.Runes(m.ArtifactType, maxListedType)
			bySubject[m.Subject.Digest] = append(bySubject[m.Subject.Digest], d)
		}
	}
	return bySubject, nil
}

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
				leftOut = append(leftOut, readable("the referrer "+referrer.Digest, r, err))
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
