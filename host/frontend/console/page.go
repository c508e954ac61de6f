package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/hako-run/hako/internal/lang"
)

//go:embed page
var pageFiles embed.FS

// types are the media types of the page's files, independent of the system.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".json": "application/json", ".png": "image/png", ".webmanifest": "application/manifest+json",
}

// pageFile is a file of the page.
type pageFile struct {
	kind, tag    string
	plain, small []byte // small is compressed, or nil if that is not smaller
}

// pages are the page's files by their path below Path, compressed once.
var pages = sync.OnceValue(func() map[string]*pageFile {
	files := map[string]*pageFile{}
	err := fs.WalkDir(pageFiles, "page", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		data, err := pageFiles.ReadFile(name)
		files[strings.TrimPrefix(name, "page/")] = newPageFile(name, data)
		return err
	})
	if err != nil {
		panic(err) // the files are embedded
	}
	files[""] = files["index.html"]
	files[japaneseIndex] = newPageFile("index.html",
		bytes.Replace(files[""].plain, []byte(`"lang/en.js"`), []byte(`"lang/ja.js"`), 1))
	return files
})

// japaneseIndex is the key of the index that preloads the Japanese texts. No path has it.
const japaneseIndex = "/ja"

// prefersJapanese reports whether the browser prefers Japanese to English, as the page does unless somebody has chosen.
func prefersJapanese(r *http.Request) bool {
	for tag := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		switch tag = strings.ToLower(strings.TrimSpace(tag)); {
		case lang.Japanese(tag):
			return true
		case strings.HasPrefix(tag, "en"):
			return false
		}
	}
	return false
}

func newPageFile(name string, data []byte) *pageFile {
	sum := sha256.Sum256(data)
	f := &pageFile{kind: types[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: data}
	var out bytes.Buffer
	// The level is valid, and writes to a buffer do not fail.
	zip, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = zip.Write(data)
	_ = zip.Close()
	if out.Len() < len(data) {
		f.small = out.Bytes()
	}
	return f
}

// newPage serves the page's files, which contain no secrets.
func newPage() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, Path)
		file, ok := pages()[name]
		if file == pages()[""] {
			w.Header().Add("Vary", "Accept-Language")
			if prefersJapanese(r) {
				file = pages()[japaneseIndex]
			}
		}
		if !ok || name == japaneseIndex {
			http.Error(w, "There is no such file.", http.StatusNotFound)
			return
		}
		file.serve(w, r)
	})
}

func (f *pageFile) serve(w http.ResponseWriter, r *http.Request) {
	h, body := w.Header(), f.plain
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	tag := f.tag
	if f.small != nil && acceptsGzip(r) {
		body, tag = f.small, strings.TrimSuffix(f.tag, `"`)+`-gzip"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails if the client is gone
	}
}

// acceptsGzip reports whether the client takes gzip (RFC 9110, section 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for item := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, weighted := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			quality, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return !weighted || err == nil && quality > 0
		}
	}
	return false
}
