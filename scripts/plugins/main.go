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

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/gobuild"
	"github.com/hako-run/hako/internal/shipped"
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
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		group.Go(func() error {
			if err := build(ctx, root, entry.Name(), out); err != nil {
				return fmt.Errorf("plugin %s: %w", entry.Name(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func build(ctx context.Context, root, name string, out *log.Logger) error {
	sections, err := sections(root, name)
	if err != nil {
		return err
	}
	wasm, err := gobuild.Plugin(ctx, filepath.Join(root, "plugins", name))
	if err != nil {
		return err
	}
	if wasm, err = manifest.Embed(wasm, sections); err != nil {
		return err
	}
	files, err := shipped.Files(name, wasm)
	if err != nil {
		return err
	}
	written := map[string][]byte{filepath.Join(root, "dist", "plugins", name+".wasm"): wasm}
	for file, data := range files {
		written[filepath.Join(root, "cmd", "hako", "shipped", file)] = data
	}
	for path, data := range written {
		changed, err := update(path, data)
		if err != nil {
			return err
		}
		if changed {
			out.Printf("%s (%.1f MiB)", path, float64(len(data))/(1<<20))
		}
	}
	return nil
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

// update writes data to path unless it is there already.
func update(path string, data []byte) (changed bool, err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return false, err
	}
	return true, os.Rename(temp, path)
}
