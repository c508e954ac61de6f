package file

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	wsys "github.com/tetratelabs/wazero/sys"
)

// usage counts what the files below one directory hold.
type usage struct {
	info   fs.FileInfo // of the directory
	root   *os.Root    // to measure it
	refs   int         // guarded by usages.mu
	stop   context.CancelFunc
	ctx    context.Context // ends with the last mount, to stop the goroutine
	walker sync.WaitGroup

	mu       sync.Mutex // guards what follows, and is held over changes of size
	named    int64      // bytes in files with a name
	orphaned int64      // bytes in open files without one
	entries  int64      // files, directories and whatever else has a name
	nodes    map[fileID]*node
	walking  bool
	void     bool          // the walk under way has been led astray
	seen     measure       // by the first walk, while it is under way
	grown    measure       // what was added to named and entries since the walk began
	ready    chan struct{} // closed by readyOnce when nobody waits for the first measurement any more
	at       time.Time     // of the last measurement
	took     time.Duration // by it

	readyOnce func()
}

// measure is what lies below a directory.
type measure struct{ bytes, entries int64 }

const (
	// awaited is how many entries the first measurement finds before guests stop waiting for it. They go by what it has found so far then.
	awaited = 10_000
	// restFactor is how much longer than a measurement the pause after it is, so that it takes no more than a hundredth of a core.
	restFactor = 100
)

// usages are those of all open mounts: two mounts of one directory hold the same files.
var usages struct {
	mu   sync.Mutex
	open []*usage
}

// shareUsage returns the usage of a directory, which release gives back.
func shareUsage(root *os.Root) (*usage, error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	usages.mu.Lock()
	defer usages.mu.Unlock()
	for _, u := range usages.open {
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
	usages.open = append(usages.open, u)
	return u, nil
}

// release gives the usage back; after the last it waits for the measurement to stop.
func (u *usage) release() {
	usages.mu.Lock()
	defer usages.mu.Unlock()
	if u.refs--; u.refs != 0 {
		return
	}
	usages.open = slices.DeleteFunc(usages.open, func(o *usage) bool { return o == u })
	u.stop()
	u.walker.Wait()
	_ = u.root.Close() // Only a descriptor.
}

// wait has the directory measured if it never was, and returns once that is done. It does not wait for more than awaited entries.
func (u *usage) wait(ctx context.Context) error {
	select {
	case <-u.ready:
		return nil
	default:
	}
	u.startMeasuring()
	select {
	case <-u.ready:
		return nil
	case <-u.ctx.Done():
		return u.ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startMeasuring measures for the first time.
func (u *usage) startMeasuring() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.at.IsZero() {
		u.walkLocked()
	}
}

// remeasureLocked measures again if the last time is longer ago than age, and than a measurement may take.
func (u *usage) remeasureLocked(age time.Duration) {
	if !u.at.IsZero() && time.Since(u.at) > max(age, restFactor*u.took) {
		u.walkLocked()
	}
}

// walkLocked starts a walk unless one is under way. What guests add meanwhile counts on top of what it finds, so a file
// it sees half-written may count twice until the next time, but nothing is missed.
func (u *usage) walkLocked() {
	if u.walking {
		return
	}
	u.walking, u.void, u.grown = true, false, measure{}
	first := u.at.IsZero()
	u.walker.Go(func() {
		begin := time.Now()
		total, err := u.walk(first)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.walking = false
		if err != nil && !first || u.ctx.Err() != nil || u.void && !first {
			return
		}
		u.named, u.entries = total.bytes+u.grown.bytes, total.entries+u.grown.entries
		u.at, u.took, u.seen = time.Now(), time.Since(begin), measure{}
		if first {
			u.readyOnce()
		}
	})
}

// walk adds up what is below the directory. What cannot be read does not count. It fails when the last mount closes, or where a directory
// moved meanwhile.
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
			if u.seen = total; total.entries >= awaited {
				u.readyOnce()
			}
		}
		return u.ctx.Err()
	})
	return total, err
}

// Names of the temporary files of the shipped plugin "files", and how old those are that an interrupted write has left.
const (
	tempPrefix  = "hako-write-"
	tempSuffix  = ".tmp"
	leftoverAge = 10 * time.Minute
)

// removeLeftover removes the file at a path if an interrupted write has left it, and reports whether it did.
func (u *usage) removeLeftover(path []string) bool {
	name := path[len(path)-1]
	if !strings.HasPrefix(name, tempPrefix) || !strings.HasSuffix(name, tempSuffix) {
		return false
	}
	where := filepath.Join(path...)
	info, err := u.root.Lstat(where)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge && u.root.Remove(where) == nil
}

// countLocked adds a change of a file's size.
func (u *usage) countLocked(n *node, change int64) {
	if n.orphaned {
		u.orphaned += change
		return
	}
	u.named += change
	u.grown.bytes += max(change, 0)
}

// usedLocked is what counts against quotas, as far as it is known.
func (u *usage) usedLocked() measure {
	return measure{u.named + u.orphaned + u.seen.bytes, u.entries + u.seen.entries}
}

// addedLocked counts a new name.
func (u *usage) addedLocked() {
	u.entries++
	u.grown.entries++
}

// replaceLocked runs do, which takes the name away from the file at p, if there is one and it is not the successor itself.
func (u *usage) replaceLocked(p *place, successor fs.FileInfo, do func() error) error {
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

// movedLocked keeps a walk from missing what moves from where it has not been to where it was: a file counts anew, and a walk
// during which a directory moved counts for nothing.
func (u *usage) movedLocked(info fs.FileInfo) {
	if info.IsDir() {
		u.void = u.void || u.walking
	} else if u.walking {
		u.grown.bytes += info.Size()
	}
}

// forgetLocked counts a file that lost its name.
func (u *usage) forgetLocked(info fs.FileInfo) {
	u.named = max(0, u.named-info.Size()) // it may have come up since the last measurement
	if n, ok := u.nodes[idOf(info)]; ok {
		n.orphaned = true
		u.orphaned += info.Size()
	}
}

// opened returns the node of a file that a guest opened; closed gives it back.
func (u *usage) opened(f *os.File) (*node, error) {
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
		if wsys.NewStat_t(info).Nlink == 0 { // removed since it was opened
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

// closed closes a guest's file.
func (u *usage) closed(n *node, f *os.File) error {
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
