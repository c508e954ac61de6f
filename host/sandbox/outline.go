package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/sandbox/compile"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/internal/wholefile"
)

// outlineSuffix ends the names of outlines. An outline has what is needed of a plugin whose code is compiled: JSON, a
// line break, the shell of a component, and the stubs of the modules. With it a process neither reads nor rewrites the
// plugin.
const outlineSuffix = ".outline"

// outlineHeader is the JSON of an outline.
type outlineHeader struct {
	rewritten
	// Shell and Stubs are the sizes of the parts that follow.
	Shell int
	Stubs []int
}

// outlinePath returns the path of the outline of a plugin file, or "" if there cannot be any. Another build of this
// program may rewrite modules differently and therefore has outlines of its own.
func (c *codeCache) outlinePath(plugin string) string {
	build := buildID()
	if plugin == "" || build == "" || c.private != nil {
		return ""
	}
	return filepath.Join(c.notes, strings.TrimPrefix(plugin, "sha256:")+"-"+build+outlineSuffix)
}

// saveOutline stores the outline of the plugin with this digest. Without it the next process rewrites the plugin.
func (c *codeCache) saveOutline(plugin string, guest *rewritten) error {
	path := c.outlinePath(plugin)
	if path == "" {
		return nil
	}
	header := outlineHeader{rewritten: *guest, Shell: len(guest.shell)}
	header.Modules = slices.Clone(guest.Modules)
	body := slices.Clone(guest.shell)
	for i := range header.Modules {
		module := &header.Modules[i]
		module.Wasm = nil
		header.Stubs = append(header.Stubs, len(module.stub))
		body = append(body, module.stub...)
	}
	data, err := json.Marshal(header)
	if err != nil {
		return err
	}
	return wholefile.Write(path, append(append(data, '\n'), body...))
}

// outline returns the outline of the plugin with this digest, or nil if there is none.
func (c *codeCache) outline(plugin string) *rewritten {
	path := c.outlinePath(plugin)
	data, err := os.ReadFile(path)
	if path == "" || err != nil {
		return nil
	}
	guest, err := decodeOutline(data)
	if err != nil {
		return nil // saved again after the plugin has been read
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // for Prune
	return guest
}

var errOutline = errors.New("its parts have other sizes than it says")

func decodeOutline(data []byte) (*rewritten, error) {
	header, rest, _ := bytes.Cut(data, []byte("\n"))
	var h outlineHeader
	if err := json.Unmarshal(header, &h); err != nil {
		return nil, err
	}
	sizes := append([]int{h.Shell}, h.Stubs...)
	parts := make([][]byte, len(sizes))
	for i, size := range sizes {
		if size < 0 || size > len(rest) {
			return nil, errOutline
		}
		parts[i], rest = rest[:size:size], rest[size:]
	}
	guest := &h.rewritten
	if len(h.Stubs) != len(guest.Modules) || len(rest) > 0 {
		return nil, errOutline
	}
	guest.shell = parts[0]
	for i := range guest.Modules {
		guest.Modules[i].stub = parts[1+i]
	}
	if len(guest.shell) == 0 {
		return guest, nil
	}
	var err error
	guest.component, err = component.Decode(guest.shell)
	return guest, err
}

// outlined reports whether the plugin with this digest has an outline, and the code that it is for. It reads the JSON
// alone.
func (c *codeCache) outlined(plugin string) bool {
	file, err := os.Open(c.outlinePath(plugin))
	if err != nil {
		return false
	}
	defer file.Close()
	var guest rewritten
	if json.NewDecoder(file).Decode(&guest) != nil {
		return false
	}
	_, all := c.compiled(&guest)
	return all
}

func (c *codeCache) removeOutline(plugin string) { _ = os.Remove(c.outlinePath(plugin)) }

// buildID identifies this build of the program: the Go build ID, which depends on all of its code. The linker puts it
// near the beginning of the file, on all systems. It is empty if there is none.
var buildID = sync.OnceValue(func() string {
	program, err := compile.Self()
	if err != nil {
		return ""
	}
	file, err := os.Open(program)
	if err != nil {
		return ""
	}
	defer file.Close()
	const searched = 64 << 10
	start, err := io.ReadAll(io.LimitReader(file, searched))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(buildIDForm.Find(start)), "/", "_")
})

// buildIDForm matches the hashes of the build's actions and of its content (cmd/internal/buildid).
var buildIDForm = regexp.MustCompile(`[\w-]{20}(/[\w-]{20}){3}`)
