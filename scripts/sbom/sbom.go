// Command sbom prints the software bill of materials of a built hako or hako-dev, in the JSON of CycloneDX 1.6: the Go modules that
// the linker wrote into the binary, with their checksums, and the plugins that ship inside it.
//
//	go run ./scripts/sbom -o hako.cdx.json bin/hako dist/plugins
//
// The same binary gives the same bytes: there is no time and no random serial number in it.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

func main() {
	output := flag.String("o", "hako.cdx.json", "the file to write")
	flag.Parse()
	if n := flag.NArg(); n < 1 || n > 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-o FILE] BINARY [FOLDER-OF-SHIPPED-PLUGINS]")
		os.Exit(2)
	}
	var text bytes.Buffer
	err := run(flag.Arg(0), flag.Arg(1), &text)
	if err == nil {
		err = os.WriteFile(*output, text.Bytes(), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run describes the program binary with the plugins in a folder; none if plugins is empty.
func run(binary, plugins string, out io.Writer) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	digest, err := fileDigest(binary)
	if err != nil {
		return err
	}
	var shipped []cdx.Component
	if plugins != "" {
		if shipped, err = shippedPlugins(plugins); err != nil {
			return err
		}
	}
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom(info, digest, shipped),
		cdx.SpecVersion1_6)
}

// bom describes the program and everything in it.
func bom(info *buildinfo.BuildInfo, digest string, shipped []cdx.Component) *cdx.BOM {
	program := goModule(&info.Main)
	program.Type, program.Name = cdx.ComponentTypeApplication, path.Base(info.Path)
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest}}
	program.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	components := []cdx.Component{goModule(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion,
		"go")})}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		components = append(components, goModule(dependency))
	}
	components = append(components, shipped...)
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &program}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return b
}

// goModule describes a module, with the checksum that go.sum has of it, which is a hash of its files' hashes (h1,
// dirhash) and so no hash of CycloneDX's.
func goModule(m *debug.Module) cdx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

// shippedPlugins describes the plugins in a folder, which are embedded in the binary as they are.
func shippedPlugins(folder string) ([]cdx.Component, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.wasm"))
	if err != nil {
		return nil, err
	}
	components := make([]cdx.Component, len(paths))
	for i, path := range paths {
		if components[i], err = shippedPlugin(path); err != nil {
			return nil, err
		}
	}
	return components, nil
}

func shippedPlugin(path string) (cdx.Component, error) {
	wasm, err := os.ReadFile(path)
	if err != nil {
		return cdx.Component{}, err
	}
	module, err := wasmfile.Read(wasm)
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: %w", path, err)
	}
	m, err := manifest.ParseModule(module)
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(wasm)
	return cdx.Component{
		Type: cdx.ComponentTypeLibrary, BOMRef: "hako:plugin/" + m.Name + "@" + m.Version, Name: m.Name,
		Version: m.Version, MIMEType: "application/wasm",
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}, nil
}

func fileDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
