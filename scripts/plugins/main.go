// Command plugins builds the shipped plugins, embeds their manifests and recordings, and puts them where they are used:
// dist/plugins for people, cmd/hako/shipped for the hako command. It writes only what has changed, so that nothing is
// built twice because of it.
//
// Run it in the root of the repository: go run ./scripts/plugins
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, ".", log.New(os.Stdout, "", 0)); err != nil {
		fmt.Fprintln(os.Stderr, "plugins:", err)
		os.Exit(1)
	}
}

// run builds every folder of root/plugins.
func run(ctx context.Context, root string, out *log.Logger) error {
	entries, err := os.ReadDir(filepath.Join(root, "plugins"))
	if err != nil {
		return fmt.Errorf("%w: run this in the root of the repository", err)
	}
	built := make([][]byte, len(entries))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		group.Go(func() error {
			var err error
			if built[i], err = build(ctx, root, entry.Name()); err != nil {
				return fmt.Errorf("plugin %s: %w", entry.Name(), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	plugins, copies := make(map[string][]byte), make(map[string][]byte)
	for i, wasm := range built {
		if name := entries[i].Name(); wasm != nil {
			plugins[name], copies[name+".wasm"] = wasm, wasm
		}
	}
	files, err := shipped.Files(plugins)
	if err != nil {
		return err
	}
	carried := filepath.Join(root, "cmd", "hako", "shipped")
	return errors.Join(
		write(filepath.Join(root, "dist", "plugins"), copies, out), write(carried, files, out),
		removeStale(carried, files))
}

func build(ctx context.Context, root, name string) ([]byte, error) {
	sections, err := sections(root, name)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "plugins", name)
	wasm, err := os.ReadFile(filepath.Join(dir, name+".wasm")) // committed, if it is not written in Go
	if errors.Is(err, fs.ErrNotExist) {
		wasm, err = gobuild.Plugin(ctx, dir)
	}
	if err != nil {
		return nil, err
	}
	return wasmfile.Embed(wasm, sections)
}

// sections reads what is embedded into the plugin: its manifest, which must be valid, and its recordings if it has any.
func sections(root, name string) (map[string][]byte, error) {
	path := filepath.Join(root, "manifests", name+".yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("every shipped plugin needs a manifest: %w", err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s:\n%w", path, err)
	}
	if m.Name != name {
		return nil, fmt.Errorf("%s: the name is %q and must be that of the folder, %q", path, m.Name, name)
	}
	recordings, err := os.ReadFile(filepath.Join(root, "plugins", name, "recordings.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return map[string][]byte{abi.ManifestSection: text, abi.RecordingsSection: recordings}, nil
}

// write writes to dir the files that are not there already.
func write(dir string, files map[string][]byte, out *log.Logger) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
			continue
		}
		temp := path + ".new"
		if err := os.WriteFile(temp, data, 0o644); err != nil {
			return err
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
		out.Printf("%s (%.1f MiB)", path, float64(len(data))/(1<<20))
	}
	return nil
}

// removeStale removes what earlier builds have left in dir, because hako carries all that is there.
func removeStale(dir string, files map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, current := files[entry.Name()]; current || entry.Name() == "README.md" {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
