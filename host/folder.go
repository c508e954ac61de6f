package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/hako-run/hako/host/grant"
)

// Load looks at the folders once and brings the plugins found into service. What is wrong with a single plugin is in its Status; an
// error means that a folder or the consents could not be read. Guests of the Extism ABI that are new are asked what they offer, for up to ten
// seconds; other plugins are in service before.
func (h *Host) Load(ctx context.Context) error {
	err := h.scan(ctx)
	for err == nil && h.listings.wait(ctx) {
		err = h.scan(ctx)
	}
	return err
}

// scan is Load, but does not wait for guests that are asked.
func (h *Host) scan(ctx context.Context) error {
	h.scanning.Lock()
	defer h.scanning.Unlock()
	sources, err := h.sources()
	if err != nil {
		return err
	}
	changed, err := h.consents.refresh(ctx, h.options())
	if err != nil {
		return err
	}
	h.forget(sources)
	// In pieces, so that not all files are in memory at once.
	for piece := range slices.Chunk(h.candidates(sources, changed), 4*runtime.GOMAXPROCS(0)) {
		h.read(piece)
		for _, c := range piece {
			h.look(ctx, c)
			c.content = nil
		}
	}
	if err := h.index.save(func(path string) bool { return h.plugins[path] != nil }); err != nil {
		h.logger.Warn("the next start will be slower", "err", err)
	}
	return ctx.Err()
}

// sources lists what should be there: shipped plugins first, so that one in a folder can take its place.
func (h *Host) sources() ([]source, error) {
	var sources []source
	for _, shipped := range h.options().Shipped {
		sources = append(sources, source{path: shipped.File, wasm: shipped.Wasm})
	}
	for _, folder := range h.options().Folders {
		entries, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("plugin folder %s does not exist: make it, or name another with --plugins", folder)
		}
		if err != nil {
			return nil, fmt.Errorf("plugin folder %s: %w", folder, err)
		}
		for _, entry := range entries {
			if filepath.Ext(entry.Name()) == ".wasm" && !entry.IsDir() {
				sources = append(sources, source{path: filepath.Join(folder, entry.Name())})
			}
		}
	}
	return sources, nil
}

// forget retires the plugins whose files are gone. Others that were in their way are looked at again.
func (h *Host) forget(sources []source) {
	present := map[string]bool{}
	for _, source := range sources {
		present[source.path] = true
	}
	var gone []Status
	defer func() {
		for _, status := range gone {
			h.changed(status)
		}
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	for path, p := range h.plugins {
		if present[path] {
			continue
		}
		h.logger.Info("plugin removed", "plugin", p.status.Name, "path", path)
		h.retire(p)
		delete(h.plugins, path)
		status := p.status
		status.State, status.Serving = Removed, ""
		gone = append(gone, status)
	}
	if len(gone) > 0 {
		h.reconsider()
	}
}

// reconsider has plugins that were in conflict looked at again. h.mu is held.
func (h *Host) reconsider() {
	for _, p := range h.plugins {
		if p.status.State == Conflict {
			p.stale = true
		}
	}
}

const (
	// quiet is how long a folder must be still before it is read: files are copied in pieces.
	quiet = 100 * time.Millisecond
	// impatience bounds the waiting for quiet.
	impatience = 500 * time.Millisecond
	// pollInterval is how often the folders are looked at anyway, for file systems that do not tell.
	pollInterval = 2 * time.Second
)

// Watch keeps the plugins up to date with the folders and the consents until ctx ends, renews credentials, and compiles plugins that are
// not yet in the background. Load must have been called. It returns nil when ctx ends, or an error if watching is impossible here.
func (h *Host) Watch(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the plugin folders: %w", err)
	}
	defer watcher.Close()
	watched := map[string]bool{}
	h.watch(watcher, watched)
	compiling := make(chan struct{})
	go func() {
		defer close(compiling)
		if err := errors.Join(h.store.prune(), h.engine.Prune()); err != nil {
			h.logger.Warn("remove old copies and images of plugins", "err", err)
		}
		h.compile(ctx)
	}()
	defer func() { <-compiling }()
	if h.options().Credentials != nil {
		var renewing sync.WaitGroup
		renewing.Go(func() { h.options().Credentials.Watch(ctx) })
		defer renewing.Wait()
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	keep := time.NewTicker(storeAge / 30)
	defer keep.Stop()
	var consented <-chan struct{}
	if s := h.options().ConsentStore; s != nil {
		consented = s.Changes(ctx, grant.Topic)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Events:
			settle(ctx, watcher.Events)
		case <-watcher.Errors:
		case <-consented:
		case <-keep.C:
			h.keepCopies()
		case <-poll.C:
		case <-h.listings.answered:
		}
		if err := h.scan(ctx); err != nil && ctx.Err() == nil {
			h.logger.Error("look at the plugin folders", "err", err)
		}
		h.watch(watcher, watched)
	}
}

// watch has the watcher tell of the directories that it does not watch yet.
func (h *Host) watch(watcher *fsnotify.Watcher, watched map[string]bool) {
	for _, dir := range h.watched() {
		if watched[dir] {
			continue
		}
		watched[dir] = true
		if err := watcher.Add(dir); err != nil {
			h.logger.Warn("this folder tells nothing of changes: it is looked at every two seconds", "path", dir, "err", err)
		}
	}
}

// watched are the directories whose changes matter.
func (h *Host) watched() []string {
	dirs := append([]string(nil), h.options().Folders...)
	if h.options().Consents != "" {
		dirs = append(dirs, filepath.Dir(h.options().Consents))
	}
	return dirs
}

// settle waits until events have stopped coming.
func settle(ctx context.Context, events <-chan fsnotify.Event) {
	limit := time.NewTimer(impatience)
	defer limit.Stop()
	for {
		still := time.NewTimer(quiet)
		select {
		case <-events:
			still.Stop()
		case <-still.C:
			return
		case <-limit.C:
			still.Stop()
			return
		case <-ctx.Done():
			still.Stop()
			return
		}
	}
}

// compile prepares one plugin after the other, the newest state of things first, so that a first call does not have to wait.
func (h *Host) compile(ctx context.Context) {
	for {
		for _, s := range h.unprepared() {
			if ctx.Err() != nil {
				return
			}
			if err := s.sandbox.Prepare(ctx); err != nil && ctx.Err() == nil {
				h.fail(s, err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-h.added:
		}
	}
}

func (h *Host) unprepared() []*service {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*service
	for _, p := range h.plugins {
		if s := p.service; s != nil && !s.sandbox.Prepared() {
			list = append(list, s)
		}
	}
	if len(list) > eager {
		list = slices.DeleteFunc(list, func(s *service) bool { return s.known })
	}
	return list
}

// eager is how many plugins are loaded from the cache of compiled code at the start. Where there are more, most will not be called soon.
const eager = 64

// fail takes a service out whose code turned out not to compile.
func (h *Host) fail(s *service, err error) {
	h.scanning.Lock()
	defer h.scanning.Unlock()
	var broken []Status
	defer func() {
		for _, status := range broken {
			h.changed(status)
		}
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.service == s {
			h.retire(p)
			p.status = Status{Path: p.status.Path, Name: s.name, Digest: p.status.Digest, State: Broken, Reason: err.Error()}
			h.logger.Error("plugin is broken", "plugin", s.name, "err", err)
			broken = append(broken, p.status)
		}
	}
}
