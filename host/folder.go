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
	"github.com/hako-run/hako/internal/wholefile"
)

// Load scans the folders once and brings the plugins found into service. Problems of a single plugin are in its Status;
// an error means that a folder or the consents could not be read. Load waits up to ten seconds for new Extism guests to
// list their tools; other plugins are in service before.
func (h *Host) Load(ctx context.Context) error {
	err := h.scan(ctx)
	for err == nil && h.listings.wait(ctx) {
		err = h.scan(ctx)
	}
	return err
}

// scan is Load without waiting for the listings of Extism guests.
func (h *Host) scan(ctx context.Context) error {
	h.scanning.Lock()
	defer h.scanning.Unlock()
	defer h.catalog.Hold()()
	sources, err := h.sources()
	if err != nil {
		return err
	}
	changed, err := h.consents.refresh(ctx, h.options())
	if err != nil {
		return err
	}
	h.forget(sources)
	h.reconsiderResolved()
	// In chunks, so that not all files are in memory at the same time.
	for piece := range slices.Chunk(h.candidates(sources, changed), 4*runtime.GOMAXPROCS(0)) {
		h.readAll(piece)
		for _, c := range piece {
			h.evaluate(ctx, c)
			c.content = nil
		}
	}
	if err := h.index.save(func(path string) bool { return h.plugins[path] != nil }); err != nil {
		h.logger.Warn("the next start will be slower", "err", err)
	}
	return ctx.Err()
}

// sources lists all plugins: shipped ones first, so that a plugin in a folder can replace one.
func (h *Host) sources() ([]source, error) {
	var sources []source
	for _, shipped := range h.options().Shipped {
		sources = append(sources, source{path: shipped.File, wasm: shipped.Wasm, module: shipped.Module})
	}
	for _, folder := range h.options().Folders {
		entries, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("plugin folder %s does not exist: create it, or name another with --plugins", folder)
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

// forget retires the plugins whose files are gone. Plugins that conflicted with them are evaluated again.
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
		h.reconsider(nil)
	}
}

// reconsider marks plugins with these names, and conflicting plugins, for evaluation. Callers hold h.mu.
func (h *Host) reconsider(names []string) {
	named := make(map[string]bool, len(names))
	for _, name := range names {
		named[name] = true
	}
	for _, p := range h.plugins {
		if named[p.status.Name] || p.status.State == Conflict {
			p.stale = true
		}
	}
}

// reconsiderResolved marks plugins for evaluation whose names have become free, for example because an upstream server
// has gone. Callers hold h.scanning.
func (h *Host) reconsiderResolved() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.conflict != nil && h.catalog.Resolved(p.conflict) {
			p.stale = true
		}
	}
}

const (
	// settleTime is the time without a change before a folder is read, because files may still be being copied.
	settleTime = 100 * time.Millisecond
	// maxSettle bounds the wait for settleTime.
	maxSettle = 500 * time.Millisecond
	// pollInterval is the scan interval for file systems without notifications.
	pollInterval = 2 * time.Second
)

// Watch keeps the plugins up to date with the folders and the consents, renews credentials, and compiles plugins in the
// background. Load must have been called. It returns nil when ctx ends, or an error if the system cannot watch files.
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
		if err := errors.Join(h.copies.prune(), h.engine.Prune(), h.removeLeftovers()); err != nil {
			h.logger.Warn("remove old copies and images of plugins, and temporary files", "err", err)
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
	keep := time.NewTicker(copyRetention / 30)
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
			h.logger.Error("scanning the plugin folders failed", "err", err)
		}
		h.watch(watcher, watched)
	}
}

// removeLeftovers removes temporary files that killed processes have left in the host's directories.
func (h *Host) removeLeftovers() error {
	o := h.options()
	dirs := slices.Clone(o.Folders)
	for _, dir := range []string{o.CacheDir, h.copies.dir.Path, o.RecordDir} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	if o.Consents != "" {
		file := o.Consents
		if target, err := filepath.EvalSymlinks(file); err == nil { // where a change writes
			file = target
		}
		dirs = append(dirs, filepath.Dir(file))
	}
	return wholefile.RemoveLeftovers(dirs...)
}

// watch adds the directories that the watcher does not watch yet.
func (h *Host) watch(watcher *fsnotify.Watcher, watched map[string]bool) {
	for _, dir := range h.watched() {
		if watched[dir] {
			continue
		}
		watched[dir] = true
		if err := watcher.Add(dir); err != nil {
			h.logger.Warn("the folder cannot be watched for changes: it is scanned every two seconds",
				"path", dir, "err", err)
		}
	}
}

// watched returns the directories to watch.
func (h *Host) watched() []string {
	dirs := append([]string(nil), h.options().Folders...)
	if h.options().Consents != "" {
		dirs = append(dirs, filepath.Dir(h.options().Consents))
	}
	return dirs
}

// settle waits until no events arrive for settleTime.
func settle(ctx context.Context, events <-chan fsnotify.Event) {
	limit := time.NewTimer(maxSettle)
	defer limit.Stop()
	for {
		still := time.NewTimer(settleTime)
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

// compile compiles the plugins in service one after the other, so that first calls need not wait for it. Most are not
// called soon; the code of those stays on disk.
func (h *Host) compile(ctx context.Context) {
	for {
		for _, s := range h.unprepared() {
			if ctx.Err() != nil {
				return
			}
			if err := s.sandbox.Prepare(ctx); err != nil && ctx.Err() == nil {
				h.fail(s, err)
			}
			s.sandbox.UnloadUncalled()
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
		if s := p.service; s != nil && !s.sandbox.Prepared() && !s.sandbox.Cached() {
			list = append(list, s)
		}
	}
	if len(list) > maxPreload {
		list = slices.DeleteFunc(list, func(s *service) bool { return s.known })
	}
	return list
}

// maxPreload bounds the plugins that are rewritten at the first start of another build of hako, though their code is in
// the cache. With more, most are not called soon.
const maxPreload = 64

// fail stops a service whose code does not compile.
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
			p.status = Status{Path: p.status.Path, Name: s.name, Digest: p.status.Digest, State: Broken,
				Reason: err.Error()}
			h.logger.Error("plugin is broken", "plugin", s.name, "err", err)
			broken = append(broken, p.status)
		}
	}
}
