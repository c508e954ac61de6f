//go:build unix

package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// walkTree calls visit for every name below a directory, parents first. names is the path from root and is valid only
// until visit returns. An error of visit ends the walk. Unreadable entries are skipped. It returns errChanged if a
// directory moves meanwhile.
//
// One directory is open at a time. The walk returns to a parent through "..", and checks that it is the directory it
// came from. So neither the time for a directory nor the number of open files depends on its depth.
func walkTree(root *os.Root, visit func(names []string, mode fs.FileMode, size int64) error) error {
	top, err := root.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	w := &treeWalk{visit: visit, top: int(top.Fd())}
	return w.run()
}

type treeWalk struct {
	visit func(names []string, mode fs.FileMode, size int64) error
	top   int
	// path are the directories from the top to the open one; names are their names, without the top.
	path  []pathDir
	names []string
}

// pathDir is a directory of the path with its subdirectories that are still to be visited.
type pathDir struct {
	id      fileID
	pending []string
}

func (w *treeWalk) run() error {
	dir, id, err := openDirectory(w.top, ".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // dir changes during the walk
	for enter := true; ; {
		if enter {
			pending, err := w.list(dir)
			if err != nil {
				return err
			}
			w.path = append(w.path, pathDir{id, pending})
		}
		here := &w.path[len(w.path)-1]
		var next *os.File
		if last := len(here.pending) - 1; last >= 0 {
			name := here.pending[last]
			here.pending = here.pending[:last]
			if next, id, err = openDirectory(int(dir.Fd()), name); err != nil {
				enter = false
				continue // it is gone or unreadable
			}
			w.names, enter = append(w.names, name), true
		} else {
			w.path = w.path[:len(w.path)-1]
			if len(w.path) == 0 {
				return nil
			}
			w.names, enter = w.names[:len(w.names)-1], false
			if next, err = w.openParent(dir); err != nil {
				return err
			}
		}
		_ = dir.Close()
		dir = next
	}
}

// openParent opens the parent of dir, which is the last directory of the path.
func (w *treeWalk) openParent(dir *os.File) (*os.File, error) {
	above, id, err := openDirectory(int(dir.Fd()), "..")
	if errors.Is(err, fs.ErrPermission) { // dir may be listed but not searched
		return w.reopenFromTop()
	}
	if err == nil && id != w.path[len(w.path)-1].id {
		_ = above.Close()
		err = errChanged
	}
	return above, err
}

// reopenFromTop opens the last directory of the path, starting from the top.
func (w *treeWalk) reopenFromTop() (*os.File, error) {
	dir, id, err := openDirectory(w.top, ".")
	for i := 0; err == nil && id == w.path[i].id; i++ {
		if i == len(w.path)-1 {
			return dir, nil
		}
		var next *os.File
		next, id, err = openDirectory(int(dir.Fd()), w.names[i])
		_ = dir.Close()
		dir = next
	}
	if err == nil {
		_ = dir.Close()
	}
	return nil, errChanged
}

// list visits the entries of dir and returns the directories among them.
func (w *treeWalk) list(dir *os.File) (directories []string, err error) {
	w.names = append(w.names, "")
	defer func() { w.names = w.names[:len(w.names)-1] }()
	for {
		names, readErr := dir.Readdirnames(maxEntries)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			mode := fs.ModeIrregular
			switch uint32(st.Mode) & unix.S_IFMT {
			case unix.S_IFREG:
				mode = 0
			case unix.S_IFDIR:
				mode = fs.ModeDir
				directories = append(directories, name)
			case unix.S_IFLNK:
				mode = fs.ModeSymlink
			}
			w.names[len(w.names)-1] = name
			if err := w.visit(w.names, mode, st.Size); err != nil {
				return nil, err
			}
		}
		if readErr != nil && !errors.Is(readErr, io.EOF) || len(names) == 0 {
			slices.Reverse(directories)
			return directories, nil
		}
	}
}

// openDirectory opens a directory by its name in another and returns its identity. It follows no link.
func openDirectory(in int, name string) (*os.File, fileID, error) {
	fd, err := unix.Openat(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileID{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, fileID{}, err
	}
	return os.NewFile(uintptr(fd), "."), fileID{uint64(st.Dev), st.Ino}, nil
}
