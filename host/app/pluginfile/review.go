package pluginfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/brokers/toolbroker"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// HandlersTime bounds the time in which a plugin lists its handlers. Tests raise it.
var HandlersTime = 10 * time.Second

// Review returns what a careful reader would object to in a plugin file of at most maxSize bytes. It asks the plugin
// for its handlers, in a sandbox with nothing granted. cache is the directory of the host's cache.
func Review(ctx context.Context, file, cache string, maxSize int64) ([]manifest.Finding, error) {
	m, module, wasm, err := Read(file, maxSize)
	if err != nil {
		return nil, err
	}
	findings := manifest.Check(module, m, nil)
	if err := sandbox.CheckStart(module, m.Limits); err != nil {
		findings = append([]manifest.Finding{{Severity: manifest.SeverityError, Message: err.Error()}}, findings...)
	}
	for _, finding := range findings {
		if finding.Severity == manifest.SeverityError {
			return findings, nil // what does not fit the host cannot be asked
		}
	}
	handlers, err := askHandlers(ctx, m, module, wasm, cache)
	if handlers != nil {
		findings = manifest.Check(module, m, handlers)
	}
	if err != nil {
		message := fmt.Sprintf("it cannot be asked for its handlers: %v", err)
		findings = append(findings, manifest.Finding{Severity: manifest.SeverityError, Message: message})
	}
	refusal, err := sandbox.FindRefusal(compiledDir(cache), func() ([]byte, error) { return wasm, nil })
	if refusal != nil {
		message := refusal.Problem() + ": " + refusal.Remedy()
		findings = append(findings, manifest.Finding{Severity: manifest.SeverityWarning, Message: message})
	}
	return findings, err
}

// compiledDir is the host's directory of compiled code in a cache directory, or none without one.
func compiledDir(cache string) string {
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "compiled")
}

// askHandlers runs a plugin with nothing granted and returns its handlers. It returns nil if the plugin does not answer
// that: one of the Extism ABI says what it offers when it is loaded.
func askHandlers(ctx context.Context, m *manifest.Manifest, module *wasmfile.Module, wasm []byte,
	cache string) (_ *abi.Handlers, err error) {
	if module.IsExtism() {
		return nil, nil
	}
	// What is asked once is interpreted: compiling it takes longer than the answer.
	engine, err := sandbox.New(&sandbox.Options{CacheDir: compiledDir(cache), Interpret: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	spec := sandbox.Spec{Name: m.Name, Wasm: func() ([]byte, error) { return wasm, nil },
		Limits: manifest.Limits{Time: HandlersTime}}
	if module.Component != nil {
		return askComponent(ctx, engine, m, module, spec)
	}
	web, err := httpbroker.New(nil, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	database := sqlbroker.New(new(grant.SQL), sqlbroker.Options{})
	defer func() { err = errors.Join(err, database.Close()) }()
	spec.Modules = []broker.Module{web.Module(), database.Module(), execbroker.Idle().Module(),
		toolbroker.New(nil, 0, 0).Module()}
	plugin := engine.Load(spec)
	defer func() { err = errors.Join(err, plugin.Close()) }()
	response, err := plugin.Call(ctx, &catalog.Invocation{Request: &abi.Request{Method: abi.ListHandlers}})
	if err != nil || response.Error != nil {
		return nil, err
	}
	return response.Handlers, nil
}

// askComponent is askHandlers for a component.
func askComponent(ctx context.Context, engine *sandbox.Engine, m *manifest.Manifest, module *wasmfile.Module,
	spec sandbox.Spec) (handlers *abi.Handlers, err error) {
	adapter, err := tool.New(module.Component, m)
	if err != nil {
		return nil, err
	}
	adapter.Equip(&spec)
	options := new(wasi.Options)
	tool.Connect(options)
	spec.Interfaces = wasi.New(options)
	plugin := engine.Load(spec)
	defer func() { err = errors.Join(err, plugin.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, HandlersTime)
	defer cancel()
	if !adapter.Lists() {
		return adapter.Handlers(ctx, plugin)
	}
	listing, err := tool.List(ctx, plugin)
	if err == nil {
		_, _, err = adapter.Complete(listing)
	}
	return nil, err
}

// WasmFiles returns path, or the plugin files in it and in its folder dist.
func WasmFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	for _, dir := range []string{path, filepath.Join(path, "dist")} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		var files []string
		for _, entry := range entries {
			if filepath.Ext(entry.Name()) == ".wasm" {
				files = append(files, filepath.Join(dir, entry.Name()))
			}
		}
		if len(files) > 0 {
			return files, nil
		}
	}
	return nil, fmt.Errorf("there is no .wasm file in %s: build the plugin first, hako plugin build %s", path, path)
}
