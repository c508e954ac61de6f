package file

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	wsys "github.com/tetratelabs/wazero/sys"

	"github.com/hako-run/hako/internal/wholefile"
)

// usage counts the bytes and names below one directory.
type usage struct {
	info   fs.FileInfo // of the directory
	root   *os.Root    // to measure it
	refs   int         // guarded by openUsages.mu
	stop   context.CancelFunc
	ctx    context.Context // ends with the last mount, which stops the walk
	walker sync.WaitGroup

	mu         sync.Mutex // guards the fields below; held during changes of size
	named      int64      // bytes of files with a name
	orphaned   int64      // bytes of open files without a name
	entries    int64      // names of all kinds
	nodes      map[fileID]*node
	walking    bool
	unreliable bool          // a directory moved during the walk, so its result is unreliable
	partial    measure       // by the first walk while it runs
	added      measure       // added to named and entries since the walk began
	ready      chan struct{} // closed by readyOnce when guests need not wait for the first measurement
	measuredAt time.Time     // end of the last measurement
	duration   time.Duration // its duration

	readyOnce func()
}

// measure is the size and the number of names below a directory.
type measure struct{ bytes, entries int64 }

const (
	// maxAwaited is the number of entries after which guests stop waiting for the first measurement. Then its partial
	// result counts.
	maxAwaited = 10_000
	// restFactor makes the pause after a measurement a hundred times its duration, so that measuring costs at most a
	// hundredth of a core.
	restFactor = 100
)

// openUsages lists the usage of every open mount. Mounts of the same directory share one.
var openUsages struct {
	mu   sync.Mutex
	open []*usage
}

// acquireUsage returns the usage of a directory. The caller releases it.
func acquireUsage(root *os.Root) (*usage, error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	openUsages.mu.Lock()
	defer openUsages.mu.Unlock()
	for _, u := range openUsages.open {
		if os.SameFile(u.info, info) {
			u.refs++
			return u, nil
		}
	}
	own, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	u := &usage{info: info, root: own, refs: 1, nodes: map[fileID]*node{}, ready: make(chan struct{})}
	u.readyOnce = sync.OnceFunc(func() { close(u.ready) })
	u.ctx, u.stop = context.WithCancel(context.Background())
	openUsages.open = append(openUsages.open, u)
	return u, nil
}

// release ends one use. The last one stops the measurement and waits for it.
func (u *usage) release() {
	openUsages.mu.Lock()
	defer openUsages.mu.Unlock()
	if u.refs--; u.refs != 0 {
		return
	}
	openUsages.open = slices.DeleteFunc(openUsages.open, func(o *usage) bool { return o == u })
	u.stop()
	u.walker.Wait()
	_ = u.root.Close() // Nothing was written through it.
}

// wait starts the first measurement if needed and waits for it, but for no more than maxAwaited entries.
func (u *usage) wait(ctx context.Context) error {
	select {
	case <-u.ready:
		return nil
	default:
	}
	u.startFirstWalk()
	select {
	case <-u.ready:
		return nil
	case <-u.ctx.Done():
		return u.ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *usage) startFirstWalk() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.measuredAt.IsZero() {
		u.walkLocked()
	}
}

// remeasureAge is the age at which the measurement of a directory with a quota is repeated, when a file grows, to
// include changes by other processes.
const remeasureAge = time.Minute

// remeasureLocked starts a new measurement if the last one is older than remeasureAge and than restFactor allows.
func (u *usage) remeasureLocked() {
	if !u.measuredAt.IsZero() && time.Since(u.measuredAt) > max(remeasureAge, restFactor*u.duration) {
		u.walkLocked()
	}
}

// walkLocked starts a walk unless one is running. What guests add meanwhile is added to its result. A file that it sees
// half-written may count twice until the next walk, but nothing is missed.
func (u *usage) walkLocked() {
	if u.walking {
		return
	}
	u.walking, u.unreliable, u.added = true, false, measure{}
	first := u.measuredAt.IsZero()
	u.walker.Go(func() {
		begin := time.Now()
		total, err := u.walk(first)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.walking = false
		if err != nil && !first || u.ctx.Err() != nil || u.unreliable && !first {
			return
		}
		u.named, u.entries = total.bytes+u.added.bytes, total.entries+u.added.entries
		u.measuredAt, u.duration, u.partial = time.Now(), time.Since(begin), measure{}
		if first {
			u.readyOnce()
		}
	})
}

// walk sums up the files below the directory, except for unreadable ones. It fails when the last mount closes or when a
// directory moves meanwhile.
func (u *usage) walk(first bool) (total measure, err error) {
	err = walkTree(u.root, func(path []string, mode fs.FileMode, size int64) error {
		if first && mode.IsRegular() && u.removeLeftover(path) {
			return nil
		}
		total.entries++
		if mode.IsRegular() {
			total.bytes += size
		}
		if total.entries%maxEntries != 0 {
			return nil
		}
		if first {
			u.mu.Lock()
			defer u.mu.Unlock()
			if u.partial = total; total.entries >= maxAwaited {
				u.readyOnce()
			}
		}
		return u.ctx.Err()
	})
	return total, err
}

// tempPattern names the temporary files of the shipped plugin "files". One older than leftoverAge is from an
// interrupted write.
const (
	tempPattern = "hako-write-*.tmp"
	leftoverAge = 10 * time.Minute
)

// removeLeftover removes the temporary file of an interrupted write and reports whether it did.
func (u *usage) removeLeftover(path []string) bool {
	name := path[len(path)-1]
	if !wholefile.IsTemporary(name, tempPattern) {
		return false
	}
	where := filepath.Join(path...)
	info, err := u.root.Lstat(where)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge &&
		u.root.Remove(where) == nil
}

// countLocked records a change of a file's size.
func (u *usage) countLocked(n *node, change int64) {
	if n.orphaned {
		u.orphaned += change
		return
	}
	u.named += change
	u.added.bytes += max(change, 0)
}

// usedLocked returns what counts against quotas, as far as it is measured.
func (u *usage) usedLocked() measure {
	return measure{u.named + u.orphaned + u.partial.bytes, u.entries + u.partial.entries}
}

// addedLocked records a new name.
func (u *usage) addedLocked() {
	u.entries++
	u.added.entries++
}

// replaceLocked runs do, which removes or replaces the entry p, and then stops counting the file that was there. A nil
// successor means removal; a file that replaces itself still counts.
func (u *usage) replaceLocked(p *dirEntry, successor fs.FileInfo, do func() error) error {
	victim, lstatErr := p.dir.Lstat(p.name)
	if err := do(); err != nil {
		return err
	}
	if lstatErr != nil || successor != nil && os.SameFile(victim, successor) {
		return nil
	}
	u.entries = max(0, u.entries-1)
	if victim.Mode().IsRegular() {
		u.forgetLocked(victim)
	}
	return nil
}

// movedLocked keeps a running walk from missing a file that moves from an unvisited to a visited directory: the file is
// counted again. If a directory moves, the result of the walk is discarded.
func (u *usage) movedLocked(info fs.FileInfo) {
	if info.IsDir() {
		u.unreliable = u.unreliable || u.walking
	} else if u.walking {
		u.added.bytes += info.Size()
	}
}

// forgetLocked records that a file lost its name.
func (u *usage) forgetLocked(info fs.FileInfo) {
	u.named = max(0, u.named-info.Size()) // it may be newer than the last measurement
	if n, ok := u.nodes[idOf(info)]; ok {
		n.orphaned = true
		u.orphaned += info.Size()
	}
}

// openNode returns the node of a file that a guest opened. closeNode releases it.
func (u *usage) openNode(f *os.File) (*node, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	id := idOf(info)
	n := u.nodes[id]
	if n == nil {
		n = &node{id: id}
		if wsys.NewStat_t(info).Nlink == 0 { // removed since the open
			n.orphaned = true
			u.orphaned += info.Size()
		}
	}
	if id != (fileID{}) {
		u.nodes[id] = n
	}
	n.handles++
	return n, nil
}

// closeNode closes a guest's file.
func (u *usage) closeNode(n *node, f *os.File) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n.handles--; n.handles == 0 {
		delete(u.nodes, n.id)
		if left, err := size(f); err == nil && n.orphaned {
			u.orphaned -= left
		}
	}
	return f.Close()
}
