package mcpclient

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/cause"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/wholefile"
)

// The cache: the last lists of each server are in a file, so that its tools are on offer before it is connected. A file
// is as untrusted as the server: its size and values are bounded, and its entries pass newOffer again.

const (
	cacheFormat = 1
	// maxCacheFile bounds a file, in bytes. maxCacheValues bounds its values (shape): as many as lists can have.
	maxCacheFile   = 2 * maxListBytes
	maxCacheValues = 3 * maxValues
	// cacheAge is the age from which on a lazy server is connected at the start to refresh its lists.
	cacheAge = 24 * time.Hour
	// confirmEvery is the interval at which a file is marked as current while its server is connected.
	confirmEvery = time.Hour
)

// cacheFile is the content of a file.
type cacheFile struct {
	Format int `json:"format"`
	// Configuration is the fingerprint of the server's configuration.
	Configuration string `json:"configuration"`
	// Protocol is legacyVersion if the server does not understand a newer one.
	Protocol  string                  `json:"protocol,omitempty"`
	Tools     []*mcp.Tool             `json:"tools"`
	Prompts   []*mcp.Prompt           `json:"prompts"`
	Resources []*mcp.Resource         `json:"resources"`
	Templates []*mcp.ResourceTemplate `json:"resourceTemplates"`
	Cut       []string                `json:"cut,omitempty"`
	Failed    []string                `json:"failed,omitempty"`
}

// errChanged is the error of a file that another configuration, or another version of hako, has written.
var errChanged = errors.New("the configuration has changed")

// cache is the file of one server. The zero value caches nothing.
type cache struct {
	path, fingerprint string
	// written is the time of the last write or confirmation by this process.
	written time.Time
}

// newCache returns the cache of a server in dir. Without a directory, and for a configuration whose variables are not
// set, it caches nothing.
func newCache(spec *Spec, options *Options, env environment) cache {
	if options.CacheDir == "" {
		return cache{}
	}
	fingerprint, err := spec.fingerprint(options.Dir, env)
	if err != nil {
		return cache{}
	}
	return cache{path: filepath.Join(options.CacheDir, spec.Name+".json"), fingerprint: fingerprint}
}

// load returns the content of the file and the time at which the lists were current. If there is no file, the error
// matches fs.ErrNotExist.
func (c *cache) load() (*cacheFile, time.Time, error) {
	if c.path == "" {
		return nil, time.Time{}, fs.ErrNotExist
	}
	info, err := os.Lstat(c.path)
	if err != nil {
		return nil, time.Time{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, time.Time{}, errors.New("it is not a regular file")
	}
	data, err := wholefile.ReadAtMost(c.path, maxCacheFile)
	if err != nil {
		return nil, time.Time{}, err
	}
	content, err := readCache(data)
	if err == nil && content.Configuration != c.fingerprint {
		err = errChanged
	}
	return content, info.ModTime(), err
}

// readCache decodes the content of a file.
func readCache(data []byte) (*cacheFile, error) {
	if err := checkCache(data); err != nil {
		return nil, err
	}
	f := new(cacheFile)
	if err := strictjson.Unmarshal(data, f); err != nil {
		return nil, err
	}
	if f.Format != cacheFormat {
		return nil, errChanged
	}
	if f.Protocol != legacyVersion {
		f.Protocol = ""
	}
	f.Tools, f.Prompts = usable(f.Tools), usable(f.Prompts)
	f.Resources, f.Templates = usable(f.Resources), usable(f.Templates)
	f.Cut = slices.DeleteFunc(f.Cut, func(kind string) bool { return !slices.Contains(listKinds[:], kind) })
	f.Failed = slices.DeleteFunc(f.Failed, func(kind string) bool { return !slices.Contains(listKinds[:], kind) })
	return f, nil
}

// checkCache bounds the values of a file before it is decoded.
func checkCache(data []byte) error {
	var s shape
	if s.add(data); s.values > maxCacheValues {
		return fmt.Errorf("it has more than %d values", maxCacheValues)
	}
	return nil
}

// usable returns the entries that a server's list could have.
func usable[T any](list []*T) []*T {
	list = slices.DeleteFunc(list, func(item *T) bool { return item == nil })
	return list[:min(len(list), maxListed)]
}

// save writes the lists to the file, or marks it as current if they are not changed. version is the one that the
// connection began with.
func (c *cache) save(l *listing, version string, changed bool) error {
	now := time.Now()
	switch {
	case c.path == "", !changed && now.Sub(c.written) < confirmEvery:
		return nil
	case !changed && os.Chtimes(c.path, now, now) == nil:
		c.written = now
		return nil
	}
	f := cacheFile{Format: cacheFormat, Configuration: c.fingerprint, Tools: l.tools, Prompts: l.prompts,
		Resources: l.resources, Templates: l.templates, Cut: l.cut}
	for _, list := range l.failed {
		f.Failed = append(f.Failed, list.kind)
	}
	if version == legacyVersion {
		f.Protocol = version
	}
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false) // escaped, a list of the largest size can become six times as long
	err := encoder.Encode(f)
	data := content.Bytes()
	if err == nil {
		err = checkCache(data)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(c.path), 0o700)
	}
	if err == nil {
		err = wholefile.Write(c.path, data)
	}
	c.written = now // also after an error, which would come again
	return cause.WithoutPath(err)
}

// remove removes the file of a server that is no longer configured.
func (c *cache) remove() {
	if c.path != "" {
		_ = os.Remove(c.path) // a file that stays is not used
	}
}

// scripts are the endings of arguments that are programs. Other files among the arguments are data, which changes
// without a change of the lists.
var scripts = []string{".cjs", ".jar", ".js", ".mjs", ".php", ".py", ".rb", ".sh", ".ts", ".wasm"}

// fingerprint identifies the configuration as far as a server's lists can depend on it: what is started or connected,
// with what, and the version of the program's files. Variables are expanded; secrets count by their source. An error
// says that a variable is not set.
func (s *Spec) fingerprint(dir string, env environment) (string, error) {
	f := *s
	f.Limits, f.StartTimeout, f.Start, f.IdleTimeout, f.Disabled = manifest.Limits{}, 0, "", 0, false
	f.Prefix, f.Tools, f.TrustAnnotations = "", Filter{}, false // apply to the lists as they were received
	var err error
	expand := func(text string) string {
		filled, bad := env.expand(text)
		err = errors.Join(err, bad)
		return filled
	}
	values := func(given map[string]Value) map[string]Value {
		filled := map[string]Value{}
		for name, v := range given {
			if v.Secret.IsZero() {
				v.Text = expand(v.Text)
			}
			filled[name] = v
		}
		return filled
	}
	path := func(text string) string {
		filled, bad := env.path(text)
		err = errors.Join(err, bad)
		return filled
	}
	f.Command, f.URL, f.Env, f.Headers = path(s.Command), expand(s.URL), values(s.Env), values(s.Headers)
	f.Args, f.Dir, f.Notes = nil, path(s.Dir), nil
	var versions []stamp
	if path, bad := exec.LookPath(f.Command); bad == nil {
		versions = append(versions, fileStamp(path))
	}
	for _, arg := range s.Args {
		arg = expand(arg)
		f.Args = append(f.Args, arg)
		if slices.Contains(scripts, filepath.Ext(arg)) {
			versions = append(versions, fileStamp(from(from(dir, f.Dir), arg)))
		}
	}
	if err != nil {
		return "", err
	}
	var stamps []string
	for _, v := range versions {
		stamps = append(stamps, fmt.Sprint(v.modified.UnixNano(), v.size))
	}
	data, err := json.Marshal([]any{dir, f, stamps})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}
