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
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
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
	if !module.IsExtism() &&
		module.Component == nil { // which say what they offer when they are loaded, or in their types
		handlers, err := askHandlers(ctx, m.Name, wasm, cache)
		findings = manifest.Check(module, m, handlers)
		if err != nil {
			message := fmt.Sprintf("it cannot be asked for its handlers: %v", err)
			findings = append(findings, manifest.Finding{Severity: manifest.SeverityError, Message: message})
		}
	}
	refusal, err := sandbox.FindRefusal(compiledDir(cache), func() ([]byte, error) { return wasm, nil })
	if refusal != nil {
		message := refusal.Problem() + ": " + refusal.Remedy()
		findings = append(findings, manifest.Finding{Severity: manifest.SeverityWarning, Message: message})
	}
	return findings, err
}

// compiledDir is the host's directory of compiled code in a cache directory.
func compiledDir(cache string) string { return filepath.Join(cache, "compiled") }

// askHandlers asks a plugin for its handlers, in a sandbox with nothing granted. It returns nil if the plugin does not
// answer that.
func askHandlers(ctx context.Context, name string, wasm []byte, cache string) (_ *abi.Handlers, err error) {
	engine, err := sandbox.New(&sandbox.Options{CacheDir: compiledDir(cache)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	web, err := httpbroker.New(nil, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	database := sqlbroker.New(new(grant.SQL), sqlbroker.Options{})
	defer func() { err = errors.Join(err, database.Close()) }()
	commands := execbroker.Idle()
	plugin := engine.Load(sandbox.Spec{
		Name: name,
		Wasm: func() ([]byte, error) { return wasm, nil },
		Modules: []broker.Module{web.Module(), database.Module(), commands.Module(),
			toolbroker.New(nil, 0, 0).Module()},
	})
	defer func() { err = errors.Join(err, plugin.Close()) }()
	response, err := plugin.Call(ctx, &catalog.Invocation{
		Request: &abi.Request{Method: abi.ListHandlers}, Limits: manifest.Limits{Time: HandlersTime},
	})
	if err != nil || response.Error != nil {
		return nil, err
	}
	return response.Handlers, nil
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
