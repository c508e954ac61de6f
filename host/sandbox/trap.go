package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/rewrite"
	"github.com/hako-run/hako/host/wasm/stack"
)

// StoppedMessage is the message of the record about an error with a stack.
const StoppedMessage = "the guest stopped"

// withStack adds the stack to an error of a call, if cause has one.
func (c *call) withStack(err, cause error) error {
	frames := trapFrames(cause)
	if len(frames) == 0 {
		return err
	}
	var report stack.Report
	if _, stopped := errors.AsType[*catalog.GuestError](err); stopped {
		report = c.log.report()
	}
	names := c.plugin.names.describe(c.plugin, frames)
	if report.Interpreted {
		names = names[max(0, len(names)-1):] // without the interpreter's own
	}
	trace := "  at " + strings.Join(append(report.Frames, names...), "\n  at ")
	c.plugin.logger.Info(StoppedMessage, "tool", c.Tool, "err", err, "stack", trace)
	return &catalog.StackError{Err: err, Stack: trace}
}

// trapFrames returns the frames of the innermost error in the tree of err that has some.
func trapFrames(err error) []stack.Frame {
	if err == nil {
		return nil
	}
	// It walks the tree itself, to errors whose texts leave out the cause's.
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if frames := trapFrames(err); len(frames) > 0 {
				return frames
			}
		}
		return nil
	}
	if frames := stack.Parse(err.Error()); len(frames) > 0 {
		return frames
	}
	return trapFrames(errors.Unwrap(err))
}

const (
	// maxNames bounds the names of functions that are kept for a plugin.
	maxNames = 1000
	// nameReads is the number of times that names may be read from a plugin file at once; nameInterval is the time
	// until one more is allowed. A guest that traps somewhere else each time costs no more.
	nameReads    = 16
	nameInterval = time.Second
)

// functionNames has the names of functions that have occurred in stack traces. The zero value is empty.
type functionNames struct {
	mu     sync.Mutex
	known  map[stack.Frame]string
	reads  int
	refill time.Time
}

// describe names the functions of frames.
func (n *functionNames) describe(p *Plugin, frames []stack.Frame) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	unknown := func(f stack.Frame) bool { _, known := n.known[f]; return f.Host == "" && !known }
	if slices.ContainsFunc(frames, unknown) && n.mayRead() {
		n.read(p, slices.DeleteFunc(slices.Clone(frames), func(f stack.Frame) bool { return !unknown(f) }))
	}
	var names []string
	for i := 0; i < len(frames); i++ {
		f := frames[i]
		switch name := n.known[f]; {
		case f.Host == rewrite.ImportModule+"."+rewrite.ImportName: // of the rewriter
		case f.Host != "":
			names = append(names, "the host function "+stack.Readable(f.Host))
		case name != "":
			names = append(names, name)
		default:
			nameless := 1
			for i+1 < len(frames) && frames[i+1].Host == "" && n.known[frames[i+1]] == "" {
				i, nameless = i+1, nameless+1
			}
			names = append(names, withoutNames(nameless))
		}
	}
	return stack.WithoutPanic(names)
}

// withoutNames stands for functions that the module has no names for. Their numbers would tell an author nothing.
func withoutNames(functions int) string {
	if functions == 1 {
		return "a function without a name: the build has left names out (docs/authors.md#when-a-plugin-stops)"
	}
	return fmt.Sprintf("%d functions without names: the build has left names out (docs/authors.md#when-a-plugin-stops)",
		functions)
}

// mayRead reports whether the plugin may be read once more.
func (n *functionNames) mayRead() bool {
	now := time.Now()
	if more := int(now.Sub(n.refill) / nameInterval); more > 0 {
		n.reads, n.refill = min(nameReads, n.reads+more), now
	}
	n.reads--
	return n.reads >= 0
}

// read reads the names of frames from the plugin file: the name sections are not kept in memory.
func (n *functionNames) read(p *Plugin, frames []stack.Frame) {
	original, err := p.spec.Wasm()
	if err != nil {
		return // the file is gone; the trap has no names
	}
	if n.known == nil || len(n.known) > maxNames {
		n.known = map[stack.Frame]string{}
	}
	if !component.IsComponent(original) {
		n.add("", original, frames)
		return
	}
	_, err = component.RewriteModules(original, func(id int, module []byte) ([]byte, error) {
		n.add(strconv.Itoa(id), module, frames)
		return nil, nil
	})
	if err != nil { // it was decoded before
		p.logger.Debug("read the names of functions", "err", err)
	}
}

// add reads the names of those frames that are in a module.
func (n *functionNames) add(module string, wasm []byte, frames []stack.Frame) {
	var functions []uint32
	for _, f := range frames {
		if f.Module == module {
			functions = append(functions, rewrite.Original(f.Function))
			n.known[f] = ""
		}
	}
	if functions == nil {
		return
	}
	lines := rewrite.FunctionLines(wasm, functions)
	for function, name := range rewrite.FunctionNames(wasm, functions) {
		name = stack.Readable(name)
		if line := lines[function]; line != "" {
			name += " (" + stack.Readable(line) + ")"
		}
		n.known[stack.Frame{Module: module, Function: rewrite.Rewritten(function)}] = name
	}
}
