// Package devloop is "hako dev plugin": a Loop rebuilds a plugin whenever its sources, its settings or its consents
// change, brings it into service and calls its examples (ExamplesFile).
package devloop

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/clip"
)

// Loop is the work on one plugin. All fields are required.
type Loop struct {
	// Dir is the plugin's folder. The plugin is built into its folder dist, which must be a folder of Host.
	Dir  string
	Host *host.Host
	// Settings apply to the served plugin.
	Settings *Settings
	// Approve shows a person what the plugin asks for, asks, and records the consent.
	Approve func(ctx context.Context, p *host.Status) error
	// Call calls a tool of the plugin.
	Call func(ctx context.Context, plugin, tool string, arguments []byte) (*pipeline.Result, error)
	// Out gets what happens.
	Out io.Writer

	// compile replaces pluginfile.Compile in tests.
	compile func(ctx context.Context, dir, name string) ([]byte, error)
}

// outputFolder is the folder that plugins in dir are built into.
func outputFolder(dir string) string { return filepath.Join(dir, "dist") }

// Run builds the plugin at once and after each change, until ctx ends. A change in the middle of a build starts it
// again. It fails if Dir cannot be read.
func (l *Loop) Run(ctx context.Context) error {
	if l.compile == nil {
		l.compile = pluginfile.Compile
	}
	watch, err := newWatcher(l.Dir, l.Settings)
	if err != nil {
		return err
	}
	changes := ""
	for ctx.Err() == nil {
		round, cancel := context.WithCancel(ctx)
		done, saved, before := make(chan struct{}), watch.saved, changes
		go func() {
			defer close(done)
			if before != "" {
				l.print("%s", terminal.Block(before))
			}
			l.round(round, ctx, saved)
		}()
		changes, err = watch.next(ctx)
		cancel()
		<-done
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return ctx.Err()
}

// round is one build with the calls after it. It ends with ctx; a question to a person ends with life. saved is when
// the last file was saved, zero if nothing has changed since the start.
func (l *Loop) round(ctx, life context.Context, saved time.Time) {
	begin := time.Now()
	if saved.IsZero() {
		saved = begin
	}
	name, size, err := l.build(ctx)
	if ctx.Err() != nil {
		return // another round follows
	}
	if err != nil {
		l.print("%v\nThe version before stays in service.\n\n", err)
		return
	}
	built := time.Now()
	status, err := l.load(ctx, life, name)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.print("%v\n\n", err)
		return
	}
	l.print("%s %s built in %s (%s), in service after %s\n", name, status.Version, seconds(built.Sub(begin)),
		terminal.Size(size), seconds(time.Since(built)))
	failed, err := l.callExamples(ctx, status)
	if err == nil && ctx.Err() == nil {
		err = l.reviewBuilt(ctx, name)
	}
	switch {
	case ctx.Err() != nil:
		l.print("Changed: again from the start.\n\n")
	case err != nil:
		l.print("%v\n\n", err)
	case failed > 0:
		l.print("%d of the examples failed, %s after the save.\n\n", failed, seconds(time.Since(saved)))
	default:
		l.print("Done %s after the save.\n\n", seconds(time.Since(saved)))
	}
}

// reviewBuilt prints what the plugin's code and its manifest do not agree on, such as a tool without a handler.
func (l *Loop) reviewBuilt(ctx context.Context, name string) error {
	c := l.Settings.Config()
	findings, err := pluginfile.Review(ctx, l.file(name), c.Cache, c.MaxPluginSize)
	for _, finding := range findings {
		if finding.Severity == manifest.SeverityError {
			l.print("%s\n", terminal.Block(finding.String()))
		}
	}
	return err
}

// build compiles the plugin, puts changed settings in force and writes the plugin with its manifest.
func (l *Loop) build(ctx context.Context) (name string, size int, err error) {
	source, err := pluginfile.ReadSource(l.Dir, "")
	if err != nil {
		return "", 0, err
	}
	wasm, err := l.compile(ctx, l.Dir, source.Name)
	if err != nil {
		return "", 0, err
	}
	if wasm, err = wasmfile.Embed(wasm, source.Sections); err != nil {
		return "", 0, err
	}
	if err := l.Settings.apply(ctx, l.Host, l.file(source.Name)); err != nil && ctx.Err() == nil {
		l.print("%v\n%s\n", err, terminal.Block(configKept))
	}
	return source.Name, len(wasm), pluginfile.Place(l.file(source.Name), wasm)
}

func (l *Loop) file(name string) string { return filepath.Join(outputFolder(l.Dir), name+".wasm") }

// load brings the file that was built into service. It needs a person's yes if the plugin asks for more than was
// approved.
func (l *Loop) load(ctx, life context.Context, name string) (*host.Status, error) {
	status, err := l.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if status.State == host.Pending || status.State == host.Revoked {
		if err := l.Settings.approve(func() error { return l.Approve(life, status) }); err != nil {
			return nil, err
		}
		if status, err = l.find(ctx, name); err != nil {
			return nil, err
		}
	}
	if status.State != host.Active {
		return nil, fmt.Errorf("plugin %s is %s: %s", name, status.State, status.Reason)
	}
	return status, nil
}

func (l *Loop) find(ctx context.Context, name string) (*host.Status, error) {
	if err := l.Host.Load(ctx); err != nil {
		return nil, err
	}
	return inspect.Find(l.Host.Plugins(), name, l.file(name))
}

// callExamples calls the examples and prints their results. It returns how many have failed.
func (l *Loop) callExamples(ctx context.Context, p *host.Status) (failed int, err error) {
	examples, file, err := readExamples(l.Dir)
	if err != nil {
		return 0, err
	}
	if file == "" && len(p.Manifest.Tools) > 0 {
		l.print("Write %s to have tools called after each save:\n\n  - tool: %s\n    arguments: {…}\n\n", examplesFile,
			p.Manifest.Tools[0].Name)
	}
	for _, e := range examples {
		begin := time.Now()
		l.print("\n%s %s\n", e.Tool, clipped(e.Arguments))
		result, err := l.Call(ctx, p.Name, e.Tool, e.Arguments)
		if ctx.Err() != nil {
			return failed, nil
		}
		took := seconds(time.Since(begin))
		if problem := l.show(e, result, err); problem != nil {
			failed++
			l.print("  FAILED in %s: %v\n", took, problem)
			continue
		}
		l.print("  ok in %s\n", took)
	}
	return failed, nil
}

// show prints the result of an example and returns what is wrong with it.
func (l *Loop) show(e example, result *pipeline.Result, err error) error {
	if err != nil {
		return err
	}
	l.print("%s\n", indented(textOf(result.Response)))
	if result.Stack != "" {
		l.print("%s\n", indented(result.Stack))
	}
	return e.check(result.Response)
}

// maxShown bounds the text of a result that is shown, in bytes.
const maxShown = 4 << 10

// indented indents a text, clipped.
func indented(text string) terminal.Block {
	text = clip.Marked(strings.TrimRight(text, "\n"), maxShown)
	return terminal.Block("  " + strings.ReplaceAll(text, "\n", "\n  "))
}

// clipped shortens JSON to a line.
func clipped(data []byte) string { return clip.Runes(string(data), 80) }

func (l *Loop) print(format string, args ...any) { _ = terminal.Printf(l.Out, format, args...) }

// seconds rounds a duration for people.
func seconds(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
