// Command mcpb packs a built hako as an MCP bundle (MCPB), which Claude Desktop and other clients install with a double
// click, and writes the server.json that the MCP registry lists it with.
//
//	go run ./scripts/mcpb -version 1.2.0 -out dist/release linux/amd64=bin/hako darwin/arm64=...
//
// The formats: manifest.json of MCPB 0.3 and server.json of 2025-12-11.
package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	// repository is the repository of the releases.
	repository  = "https://github.com/hako-run/hako"
	description = "Sandboxed WebAssembly tools that reach only the files, hosts and time you granted"
)

// platforms are MCPB's names for Go's operating systems.
var platforms = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}

func main() {
	version := flag.String("version", "0.0.0", "the release, without a leading v")
	out := flag.String("out", "dist/release", "the folder to write into")
	flag.Parse()
	if err := run(*version, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mcpb:", err)
		os.Exit(1)
	}
}

// run packs each binary, given as OS/ARCH=FILE, and lists the bundles.
func run(version, out string, binaries []string) error {
	if len(binaries) == 0 {
		return errors.New("name at least one binary, as linux/amd64=bin/hako")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var packages []registryPackage
	for _, argument := range binaries {
		target, binary, _ := strings.Cut(argument, "=")
		goos, arch, _ := strings.Cut(target, "/")
		if platforms[goos] == "" || arch == "" || binary == "" {
			return fmt.Errorf("%s: want OS/ARCH=FILE, with linux, darwin or windows", argument)
		}
		name := fmt.Sprintf("hako_%s_%s_%s.mcpb", version, goos, arch)
		digest, err := bundle(filepath.Join(out, name), binary, goos, version)
		if err != nil {
			return err
		}
		packages = append(packages, registryPackage{
			Type: "mcpb", Identifier: repository + "/releases/download/v" + version + "/" + name, Digest: digest,
			Version:   version,
			Transport: transport{"stdio"},
		})
	}
	return writeJSON(filepath.Join(out, "server.json"), server(version, packages))
}

// bundle writes one bundle and returns its SHA-256.
func bundle(path, binary, goos, version string) (digest string, err error) {
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	archive := zip.NewWriter(io.MultiWriter(file, hash))
	program := "server/hako"
	if goos == "windows" {
		program += ".exe"
	}
	text, err := json.MarshalIndent(manifest(goos, program, version), "", "  ")
	if err != nil {
		return "", err
	}
	if err := add(archive, "manifest.json", 0o644, strings.NewReader(string(text))); err != nil {
		return "", err
	}
	source, err := os.Open(binary)
	if err != nil {
		return "", err
	}
	defer source.Close()
	if err := add(archive, program, 0o755, source); err != nil {
		return "", err
	}
	if err := archive.Close(); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func add(archive *zip.Writer, name string, mode os.FileMode, content io.Reader) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate}
	header.SetMode(mode)
	entry, err := archive.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, content)
	return err
}

// manifest is the bundle's manifest.json. The user chooses one folder; configuration, plugins and what tools write lie
// in it.
func manifest(goos, program, version string) map[string]any {
	return map[string]any{
		"manifest_version": "0.3",
		"name":             "hako", "display_name": "hako", "version": version, "description": description,
		"long_description": "hako runs tools as WebAssembly plugins, each in a sandbox that has only what you granted. " +
			"It comes with weather forecasts for Japan, files in one folder, and a task board; drop more plugins into the folder's hako.yaml.",
		"author":        map[string]any{"name": "hako", "url": repository},
		"repository":    map[string]any{"type": "git", "url": repository},
		"documentation": repository + "/blob/main/README.md",
		"support":       repository + "/issues",
		"license":       "Apache-2.0",
		"keywords":      []string{"wasm", "sandbox", "tools", "files", "weather"},
		"server": map[string]any{
			"type": "binary", "entry_point": program,
			"mcp_config": map[string]any{
				"command": "${__dirname}/" + program,
				"args":    []string{"--directory", "${user_config.folder}", "serve", "--stdio"},
				"env":     map[string]string{},
			},
		},
		"tools_generated": true,
		"user_config": map[string]any{"folder": map[string]any{
			"type": "directory", "title": "Folder", "required": true, "default": "${HOME}",
			"description": "Where hako.yaml, plugins and hako's state lie. Tools see the folder workspace in it, and nothing else.",
		}},
		"compatibility": map[string]any{"platforms": []string{platforms[goos]}},
	}
}

type transport struct {
	Type string `json:"type"`
}

// registryPackage is one way to install the server.
type registryPackage struct {
	Type       string    `json:"registryType"`
	Identifier string    `json:"identifier"`
	Digest     string    `json:"fileSha256"`
	Version    string    `json:"version"`
	Transport  transport `json:"transport"`
}

// server is the registry's entry.
func server(version string, packages []registryPackage) map[string]any {
	return map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    "io.github.hako-run/hako", "title": "hako", "description": description, "version": version,
		"websiteUrl": repository,
		"repository": map[string]any{"url": repository, "source": "github"},
		"packages":   packages,
	}
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
