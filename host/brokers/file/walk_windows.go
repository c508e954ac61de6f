package file

import (
	"io/fs"
	"os"
)

// walkTree calls visit for every name below a directory, parents first. names is the path from root and is valid only
// until visit returns. An error of visit ends the walk. Unreadable entries are skipped. The directories of the path
// stay open.
func walkTree(root *os.Root, visit func(names []string, mode fs.FileMode, size int64) error) error {
	return walkBelow(root, nil, visit)
}

func walkBelow(dir *os.Root, way []string, visit func(names []string, mode fs.FileMode, size int64) error) error {
	f, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	var directories []string
	for {
		entries, _ := f.ReadDir(maxEntries)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue
			}
			if info.IsDir() {
				directories = append(directories, e.Name())
			}
			if err := visit(append(way, e.Name()), info.Mode().Type(), info.Size()); err != nil {
				return err
			}
		}
		if len(entries) == 0 {
			break
		}
	}
	for _, name := range directories {
		sub, err := dir.OpenRoot(name)
		if err != nil {
			continue
		}
		err = walkBelow(sub, append(way, name), visit)
		_ = sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
