package console

import (
	"cmp"
	"context"
	"io"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry/signature"
)

// PluginFolder is the folder that plugins are added to.
type PluginFolder interface {
	// State returns the path of the folder and whether plugins can be added to it.
	State() PluginFolderState
	// Fetch downloads a file of at most MaxSize bytes, over https and from public addresses only.
	Fetch(ctx context.Context, from *url.URL) ([]byte, error)
	// Read reads a plugin for the folder; nothing of it runs. It fails if the file is no plugin, or does not have the
	// digest, unless that is empty. from is the URL that it came from without its query, or empty for an upload.
	Read(wasm []byte, from, digest string) (*Addition, error)
	// Signer returns who signed the file of a plugin. ok is false for plugins that are in no folder, such as shipped
	// ones.
	Signer(p *host.Status) (signer signature.Signer, ok bool, err error)
}

// signerJSON is the signer of a plugin: an identity or a key. Without either it is unsigned.
type signerJSON struct {
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`
	Key     string `json:"key,omitempty"`
}

// PluginFolderState is the state of a PluginFolder.
type PluginFolderState struct {
	Dir string
	// MaxSize bounds a plugin's file, in bytes.
	MaxSize int64
	// Problem is why no plugin can be added.
	Problem error
}

// Addition is a plugin that can be added to the folder.
type Addition struct {
	Manifest *manifest.Manifest
	Digest   string
	// Path is its file in the folder. Exists reports whether Place replaces that file.
	Path   string
	Exists bool
	// Signer is the verified signer.
	Signer signature.Signer
	// Size is the size of the file, in bytes. From is the source of a download, empty for an upload.
	Size  int
	From  string
	Place func(context.Context) error
	// Changes describes in a language how it differs from the version in the folder. Nil means that there is none.
	Changes func(language string) ([]string, error)
}

const (
	// wasmType is the type of an uploaded plugin. Forms of other sites cannot send it.
	wasmType = "application/wasm"
	// unboundedBody is for routes that bound their bodies themselves.
	unboundedBody = math.MaxInt64
	// uploadTime bounds the upload of a plugin.
	uploadTime = 5 * time.Minute
)

var (
	faultAdding = &fault{code: codeLimited, retry: 10, text: manifest.Text{
		"en": "Another plugin is being added.", "ja": "別のプラグインを追加しています。",
	}, remedy: manifest.Text{"en": "Try again in a moment.", "ja": "しばらくしてから再度お試しください。"}}
	faultExists = &fault{code: codeConflict, text: manifest.Text{
		"en": "The folder already has a file of this plugin.", "ja": "このプラグインのファイルはすでにフォルダーにあります。",
	}, remedy: manifest.Text{
		"en": "Choose to replace it if that is intended. A version in service stays until the new one is approved.",
		"ja": "置き換えてよければ置き換えてください。新しいバージョンが承認されるまで、稼働中のバージョンはそのまま使われます。",
	}}
)

// folderJSON is the folder that plugins are added to. Machines is the number of machines with a folder of their own.
type folderJSON struct {
	Dir      string `json:"dir"`
	MaxSize  int64  `json:"maxSize"`
	Problem  string `json:"problem,omitempty"`
	Machines int    `json:"machines,omitempty"`
}

func (c *Console) pluginFolder(q *request) (any, error) {
	if c.options.Folder == nil {
		return &folderJSON{Problem: "plugins cannot be added here"}, nil
	}
	s := c.options.Folder.State()
	answer := &folderJSON{Dir: s.Dir, MaxSize: s.MaxSize}
	if s.Problem != nil {
		answer.Problem = s.Problem.Error()
	}
	replicas, err := c.options.Store.Replicas(q.Context())
	if len(replicas) > 1 {
		answer.Machines = len(replicas)
	}
	return answer, err
}

// additionJSON shows a plugin before it is added. Before is the version of the file that it would replace.
type additionJSON struct {
	Name        string       `json:"name"`
	Version     string       `json:"version"`
	Description string       `json:"description"`
	License     string       `json:"license"`
	Digest      string       `json:"digest"`
	Size        int          `json:"size"`
	Asks        []string     `json:"asks"`
	Tools       []pluginTool `json:"tools"`
	Exists      bool         `json:"exists"`
	Before      string       `json:"before,omitempty"`
	From        string       `json:"from,omitempty"`
	Signer      signerJSON   `json:"signer"`
	Changes     []string     `json:"changes,omitempty"`
}

// readFile shows what an uploaded plugin asks for. Nothing is kept.
func (c *Console) readFile(q *request) (any, error) {
	return c.withUpload(q, func(wasm []byte) (any, error) { return c.readAddition(q, wasm, "", "") })
}

// readURL shows what a plugin asks for that a URL answers. Nothing is kept.
func (c *Console) readURL(q *request) (any, error) {
	return c.withDownload(q, func(wasm []byte, d *downloadJSON) (any, error) {
		return c.readAddition(q, wasm, d.from(), d.Digest)
	})
}

// addFile adds an uploaded plugin. The digest says which one was shown.
func (c *Console) addFile(q *request) (any, error) {
	return c.withUpload(q, func(wasm []byte) (any, error) {
		return c.addWasm(q, wasm, "", q.param("digest"), q.param("replace") == "true")
	})
}

// addURL downloads a plugin again and adds it. The digest says which one was shown.
func (c *Console) addURL(q *request) (any, error) {
	return c.withDownload(q, func(wasm []byte, d *downloadJSON) (any, error) {
		return c.addWasm(q, wasm, d.from(), d.Digest, d.Replace)
	})
}

// beginAdding reports whether a plugin can be added, and until end keeps others from adding one: each may take MaxSize
// bytes of memory.
func (c *Console) beginAdding(q *request) (s PluginFolderState, end func(), err error) {
	if c.options.Folder == nil {
		return s, nil, notFound("plugin folder", "")
	}
	if s = c.options.Folder.State(); s.Problem != nil {
		return s, nil, faultFolder(s.Problem)
	}
	select {
	case c.adding <- struct{}{}:
		q.untilAnswered()
		return s, func() { <-c.adding }, nil
	default:
		return s, nil, faultAdding
	}
}

// faultFolder is the response when the folder cannot be written.
func faultFolder(problem error) *fault {
	return &fault{code: codeUnavailable, text: said("%v", problem), remedy: manifest.Text{
		"en": "Add the file the way this folder is provisioned, such as an image or a volume, or set plugins to a " +
			"folder that hako can write to.",
		"ja": "このフォルダーを用意した方法 (イメージやボリュームなど) でファイルを置くか、hako が書き込めるフォルダーを plugins に設定してください。",
	}}
}

func (c *Console) withUpload(q *request, use func(wasm []byte) (any, error)) (any, error) {
	s, end, err := c.beginAdding(q)
	if err != nil {
		return nil, err
	}
	defer end()
	tooLarge := &fault{code: codeTooLarge, text: said("the file is larger than %d bytes", s.MaxSize),
		remedy: said("raise maxPluginSize in hako.yaml if that is right")}
	if q.ContentLength > s.MaxSize {
		return nil, tooLarge
	}
	_ = q.control.SetReadDeadline(time.Now().Add(uploadTime)) // not every connection has one
	wasm, err := io.ReadAll(io.LimitReader(q.Body, s.MaxSize+1))
	if err != nil {
		return nil, invalid("the upload failed: %v", err)
	}
	if int64(len(wasm)) > s.MaxSize {
		return nil, tooLarge
	}
	return use(wasm)
}

// downloadJSON asks for a plugin from a URL. Digest may be empty where it is only shown.
type downloadJSON struct {
	URL     string `json:"url"`
	Digest  string `json:"digest"`
	Replace bool   `json:"replace"`
}

// from returns the URL without what may be secret.
func (d *downloadJSON) from() string {
	u, err := url.Parse(d.URL)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (c *Console) withDownload(q *request, use func([]byte, *downloadJSON) (any, error)) (any, error) {
	d := new(downloadJSON)
	if err := q.decode(d); err != nil {
		return nil, err
	}
	u, err := url.Parse(d.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, invalid("the address is not an https URL, such as https://example.com/weather.wasm")
	}
	_, end, err := c.beginAdding(q)
	if err != nil {
		return nil, err
	}
	defer end()
	wasm, err := c.options.Folder.Fetch(q.Context(), u)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return use(wasm, d)
}

func (c *Console) readAddition(q *request, wasm []byte, from, digest string) (any, error) {
	p, err := c.options.Folder.Read(wasm, from, digest)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return c.shown(q, p), nil
}

// shown describes a plugin before it is added.
func (c *Console) shown(q *request, p *Addition) *additionJSON {
	m := p.Manifest
	answer := &additionJSON{Name: m.Name, Version: m.Version, Description: m.Description.In(q.language),
		License: m.License,
		Digest:  p.Digest, Size: p.Size, Asks: grant.Explain(m.Permissions,
			q.language), Tools: []pluginTool{}, Exists: p.Exists,
		From: p.From, Signer: signerJSON(p.Signer)}
	for _, t := range m.Tools {
		answer.Tools = append(answer.Tools, pluginTool{t.Name, t.Title.In(q.language), t.Description.In(q.language)})
	}
	list := c.options.Host.Plugins()
	if i := slices.IndexFunc(list, func(s host.Status) bool { return filepath.Clean(s.Path) == p.Path }); i >= 0 {
		answer.Before = list[i].Version
	}
	if p.Changes != nil {
		// A lock file that cannot be read is reported when the plugin is placed.
		answer.Changes, _ = p.Changes(q.language)
	}
	return answer
}

// addWasm adds a file.
func (c *Console) addWasm(q *request, wasm []byte, from, digest string, replace bool) (any, error) {
	p, err := c.options.Folder.Read(wasm, from, digest)
	if err != nil {
		return nil, invalid("%v", err)
	}
	return c.add(q, p, "plugin.add", digest, replace)
}

// add puts a plugin into the folder, where it waits for consent, and records it as action. digest is that of the plugin
// that was shown.
func (c *Console) add(q *request, p *Addition, action, digest string, replace bool) (any, error) {
	switch {
	case digest == "":
		return nil, invalid("the digest of the plugin that was shown is missing")
	case !strings.EqualFold(digest, p.Digest):
		return nil, faultChanged
	case p.Exists && !replace:
		return nil, faultExists
	}
	m := p.Manifest
	o := &audit.Operation{Action: action, Target: audit.Target{Plugin: m.Name, Digest: p.Digest},
		Detail: map[string]string{"version": m.Version, "from": cmp.Or(p.From, "upload")}}
	err := c.audited(q, o, func() error {
		if err := p.Place(q.lasting()); err != nil {
			return faultFolder(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.options.Host.Load(q.lasting()); err != nil {
		return nil, err
	}
	return map[string]string{"name": m.Name}, nil
}
