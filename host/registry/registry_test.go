package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

const manifestText = "name: probe\nversion: 1.0.0\n"

// plugin is the smallest Wasm module, with a manifest inside.
func plugin(t testing.TB) []byte {
	t.Helper()
	wasm, err := wasmfile.Embed([]byte("\x00asm\x01\x00\x00\x00"),
		map[string][]byte{abi.ManifestSection: []byte(manifestText)})
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func client(t testing.TB, options registry.Options) *registry.Client {
	t.Helper()
	c, err := registry.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func parse(t testing.TB, text string) registry.Reference {
	t.Helper()
	r, err := registry.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPushAndPull: what was pushed is pulled by tag and by digest, with the manifest; pushing again changes nothing;
// tags are listed, and referrers are attached and found.
func TestPushAndPull(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...registrytest.Middleware) *registrytest.Registry{
		"without TLS": registrytest.Start, "with TLS": registrytest.StartTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := start(t)
			options := registry.Options{}
			if at.CA != "" {
				options.Registries = map[string]registry.Host{at.Host: {CA: at.CA}}
			}
			c, wasm := client(t, options), plugin(t)
			tagged := parse(t, at.Reference("tools/probe", "1.0"))
			a := &registry.Artifact{Wasm: wasm, Annotations: map[string]string{registry.AnnotationVersion: "1.0.0"}}
			digest, err := c.Push(t.Context(), tagged, a)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := client(t, options).Push(t.Context(), tagged, a); err != nil || again != digest {
				t.Errorf("pushing again: %s, %v, want %s", again, err, digest)
			}
			if resolved, err := c.Resolve(t.Context(), tagged); err != nil || resolved != digest {
				t.Errorf("Resolve: %s, %v", resolved, err)
			}
			for _, r := range []registry.Reference{tagged, tagged.WithDigest(digest), parse(t, at.Reference("tools/probe", digest))} {
				got, err := c.Pull(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got.Wasm, wasm) || got.Digest != digest ||
					got.Annotations[registry.AnnotationVersion] != "1.0.0" {
					t.Errorf("got %+v", got)
				}
			}
			if tags, err := c.Tags(t.Context(), tagged); err != nil || strings.Join(tags, " ") != "1.0" {
				t.Errorf("Tags: %v, %v", tags, err)
			}
			if _, err := c.Pull(t.Context(), parse(t, at.Reference("tools/probe", "2"))); !errors.Is(err, registry.ErrNotFound) {
				t.Errorf("an unknown tag: %v", err)
			}

			pinned := tagged.WithDigest(digest)
			if err := c.Attach(t.Context(), pinned, "application/x-note", []byte("note"), "text/plain", nil); err != nil {
				t.Fatal(err)
			}
			for _, artifactType := range []string{"", "application/x-note"} {
				notes, _, err := c.Referrers(t.Context(), pinned, artifactType)
				if err != nil || len(notes) != 1 || notes[0].ArtifactType != "application/x-note" ||
					string(notes[0].Layers[0].Content) != "note" {
					t.Errorf("Referrers %q: %+v, %v", artifactType, notes, err)
				}
			}
			if none, _, err := c.Referrers(t.Context(), pinned, "application/x-other"); err != nil || len(none) != 0 {
				t.Errorf("other referrers: %v, %v", none, err)
			}
		})
	}
}

// archive returns a tar of names and contents in turn, compressed if asked to. A name after "@" is a link.
func archive(t testing.TB, compressed bool, files ...any) string {
	t.Helper()
	var out bytes.Buffer
	var packed io.WriteCloser = nopCloser{&out}
	if compressed {
		packed = gzip.NewWriter(&out)
	}
	w := tar.NewWriter(packed)
	for pair := range slices.Chunk(files, 2) {
		name, _ := pair[0].(string)
		content, _ := pair[1].([]byte)
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if link, ok := strings.CutPrefix(name, "@"); ok {
			header.Name, header.Linkname, header.Typeflag = link, "/etc/passwd", tar.TypeSymlink
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
