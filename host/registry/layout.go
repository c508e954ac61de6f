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
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictjson"
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
	if err := strictjson.Unmarshal(text, &index); err != nil {
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
	_ = strictjson.Unmarshal(text, &m) // the reader of the manifest reports what is wrong with it
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
		if strictjson.Unmarshal(text, &m) == nil && m.Subject != nil {
			d := content.NewDescriptorFromBytes(mediaTypeOf(text), text)
			d.ArtifactType = clip.Runes(m.ArtifactType, maxListedType)
			bySubject[m.Subject.Digest] = append(bySubject[m.Subject.Digest], d)
		}
	}
	return bySubject, nil
}
