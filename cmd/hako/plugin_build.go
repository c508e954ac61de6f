package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/gobuild"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/abi"
)

func (a *app) pluginBuildCommand() *cobra.Command {
	var manifestFile, output string
	cmd := &cobra.Command{
		Use:   "build DIR",
		Short: "Compile a plugin written in Go, with its manifest inside",
		Long: `Compile the plugin in DIR with the standard Go compiler and embed its manifest: manifest.yaml or NAME.yaml in DIR, where NAME is
DIR's. recordings.json in DIR, if there is one, is embedded too, for MOCK_MODE. The result is DIR/dist/NAME.wasm.`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.path(args[0])
			source, err := a.pluginSource(dir, manifestFile)
			if err != nil {
				return err
			}
			wasm, err := gobuild.Plugin(cmd.Context(), dir)
			if err != nil {
				return err
			}
			out := filepath.Join(dir, "dist", source.name+".wasm")
			if output != "" {
				out = a.path(output)
			}
			return a.writePlugin(out, wasm, source.sections)
		},
	}
	cmd.Flags().StringVar(&manifestFile, "manifest", "",
		"manifest to embed (default DIR/manifest.yaml or DIR/NAME.yaml)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default DIR/dist/NAME.wasm)")
	return cmd
}

// pluginSource is what a plugin's folder holds besides code.
type pluginSource struct {
	name     string
	sections map[string][]byte
}

// pluginSource reads the manifest, which must be valid, and the recordings in dir.
func (a *app) pluginSource(dir, manifestFile string) (*pluginSource, error) {
	candidates := []string{filepath.Join(dir, "manifest.yaml"), filepath.Join(dir, filepath.Base(dir)+".yaml")}
	if manifestFile != "" {
		candidates = []string{a.path(manifestFile)}
	}
	text, m, err := readManifest(candidates...)
	if err != nil {
		return nil, err
	}
	recordings, err := os.ReadFile(filepath.Join(dir, "recordings.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &pluginSource{m.Name, map[string][]byte{abi.ManifestSection: text, abi.RecordingsSection: recordings}}, nil
}

// readManifest reads the first of the files that exists.
func readManifest(candidates ...string) ([]byte, *manifest.Manifest, error) {
	for _, path := range candidates {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		m, err := manifest.Parse(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s:\n%w", path, err)
		}
		return text, m, nil
	}
	return nil, nil, fmt.Errorf("there is no manifest: looked for %s", strings.Join(candidates, " and "))
}

// writePlugin embeds the sections and writes the plugin in one step, so that a host that watches the folder sees it
// whole.
func (a *app) writePlugin(path string, wasm []byte, sections map[string][]byte) error {
	wasm, err := manifest.Embed(wasm, sections)
	if err != nil {
		return err
	}
	if err := placeFile(path, wasm); err != nil {
		return err
	}
	err = printf(a.stdout, "%s (%s)\n", path, size(len(wasm)))
	return err
}

// placeFile writes a file that is there as a whole or not at all, so that a host that watches its folder never sees a
// part of it.
func placeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := wholefile.RemoveLeftovers(filepath.Dir(path)); err != nil {
		return err
	}
	return wholefile.WriteDurable(path, content, 0o644)
}
