//go:build linux

package confine_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probe performs an operation and prints its result.
func probe(operation string, arguments []string) int {
	operations := map[string]func([]string) error{
		"read": func(a []string) error {
			text, err := os.ReadFile(a[0])
			fmt.Print(string(text))
			return err
		},
		"write":  func(a []string) error { return os.WriteFile(a[0], []byte("written"), 0o644) },
		"remove": func(a []string) error { return os.Remove(a[0]) },
		"list": func(a []string) error {
			list, err := os.ReadDir(a[0])
			fmt.Println(list)
			return err
		},
		"symlink": func(a []string) error {
			_, err := os.ReadFile(a[1])
			return errors.Join(os.Symlink(a[0], a[1]), err, second(os.ReadFile(a[1])))
		},
		"link":   func(a []string) error { return os.Link(a[0], a[1]) },
		"rename": func(a []string) error { return os.Rename(a[0], a[1]) },
		"exec":   func(a []string) error { return syscall.Exec(a[0], a, nil) },
		"own": func([]string) error {
			self, err := os.ReadFile("/bin/ls")
			if err != nil {
				self = []byte("#!/bin/sh\n")
			}
			return errors.Join(os.WriteFile("own", self, 0o755), syscall.Exec("own", []string{"own"}, nil))
		},
		"dial": func(a []string) error {
			conn, err := net.DialTimeout(a[0], a[1], time.Second)
			if err != nil {
				return err
			}
			return second(conn.Write([]byte("x")))
		},
		"signal": func(a []string) error {
			var pid int
			if _, err := fmt.Sscan(a[0], &pid); err != nil {
				return err
			}
			err := syscall.Kill(pid, syscall.SIGKILL)
			time.Sleep(50 * time.Millisecond)
			fmt.Println("alive")
			return err
		},
		"chmod": func(a []string) error { return os.Chmod(a[0], 0o700) },
		"chown": func(a []string) error { return os.Chown(a[0], os.Getuid(), os.Getgid()) },
		"touch": func(a []string) error { return os.Chtimes(a[0], time.Now(), time.Now()) },
		"attribute": func(a []string) error {
			err := unix.Setxattr(a[0], "user.probe", []byte("x"), 0)
			if err == unix.EOPNOTSUPP { // the file system does not support them
				return nil
			}
			return err
		},
		"descriptors": func([]string) error {
			for fd := 3; fd < 200; fd++ {
				if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
					return fmt.Errorf("%d is open", fd)
				}
			}
			return nil
		},
		"pair": func(a []string) error { // a datagram socket of a pair can send to any other socket
			fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			return syscall.Sendto(fds[0], []byte("x"), 0, &syscall.SockaddrUnix{Name: a[0]})
		},
		"socket": func(a []string) error {
			var family, protocol int
			if _, err := fmt.Sscan(a[0]+" "+a[1], &family, &protocol); err != nil {
				return err
			}
			return second(syscall.Socket(family, syscall.SOCK_STREAM, protocol))
		},
		"syscall": func(a []string) error {
			var number, argument uintptr
			if _, err := fmt.Sscan(a[0]+" "+a[1], &number, &argument); err != nil {
				return err
			}
			if _, _, errno := syscall.Syscall(number, argument, 0, 0); errno != 0 {
				return errno
			}
			return nil
		},
		"mount":  func([]string) error { return syscall.Mount("none", "/tmp", "tmpfs", 0, "") },
		"setuid": func([]string) error { return syscall.Setuid(12345) },
		"processes": func([]string) (err error) {
			started := 0
			for ; started < 1000 && err == nil; started++ {
				child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
				for child == 0 && errno == 0 { // the child waits
					_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
				}
				if errno != 0 {
					started, err = started-1, errno
				}
			}
			fmt.Printf("started %d\n", started)
			return err
		},
		"grow": func([]string) error { return os.Truncate("inside", 1<<40) },
		"memory": func([]string) error {
			eaten := make([]byte, int64(8)<<30)
			for i := range eaten {
				eaten[i] = 1
			}
			return nil
		},
		"files": func([]string) error {
			for range 10_000 {
				if _, err := os.Open(os.DevNull); err != nil {
					return err
				}
			}
			return nil
		},
		"suicide": func([]string) error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	}
	if err := operations[operation](arguments); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func second[T any](_ T, err error) error { return err }
