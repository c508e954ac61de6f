package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// sealFileSystem makes the file system read-only in this process's mount namespace, except at and below the paths in
// write. It replaces the files in replace.
//
// Landlock controls the opening of files, but not changes of their modes, owners, times and attributes.
func sealFileSystem(write []string, replace map[string]string) error {
	if err := makeReadOnly(write); err != nil {
		return err
	}
	for path, file := range replace {
		if err := bindOver(path, file); err != nil {
			return fmt.Errorf("show %s as %s: %w", file, path, err)
		}
	}
	return nil
}

// bindOver mounts file at path. It is read-only like its file system.
func bindOver(path, file string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, file, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	err = unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
	return errors.Join(err, unix.Close(fd))
}

func makeReadOnly(write []string) (err error) {
	open := map[string]int{}
	defer func() {
		for _, fd := range open {
			err = errors.Join(err, unix.Close(fd))
		}
	}()
	for _, path := range write {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		switch {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return fmt.Errorf("keep %s writable: %w", path, err)
		default:
			open[path] = fd
		}
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &readOnly); err != nil {
		return fmt.Errorf("make the file system read-only: %w", err)
	}
	for _, path := range write {
		fd, ok := open[path]
		if !ok {
			continue
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path,
			unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS); err != nil {
			return fmt.Errorf("keep %s writable: %w", path, err)
		}
	}
	return nil
}
