package execbroker_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probe performs a network operation and prints its result.
func probe(operation string, arguments []string) int {
	if err := probes[operation](arguments); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

const probeTime = 20 * time.Second

var probes = map[string]func([]string) error{
	"say": func(a []string) error {
		conn, err := net.DialTimeout("tcp", a[0], probeTime)
		if err != nil {
			return err
		}
		return exchange(conn, "")
	},
	"tunnel": func(a []string) error {
		conn, err := dialProxy()
		if err != nil {
			return err
		}
		return exchange(conn, fmt.Sprintf("CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", a[0]))
	},
	"socks": probeSOCKS,
	"itself": func([]string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}
		}()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		return exchange(conn, "")
	},
	"send": func(a []string) error {
		conn, err := net.Dial("udp", a[0])
		if err != nil {
			return err
		}
		for range 3 { // a port unreachable error is reported at the next one
			if _, err = conn.Write([]byte("x")); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	},
	"lookup": func(a []string) error {
		addresses, err := net.LookupHost(a[0])
		fmt.Println(addresses)
		return err
	},
	"fastopen": func(a []string) error {
		address, err := net.ResolveTCPAddr("tcp4", a[0])
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: address.Port,
			Addr: [4]byte(address.IP.To4())}); err != nil {
			return err
		}
		buffer := make([]byte, 100)
		n, err := unix.Read(fd, buffer)
		fmt.Printf("%s\n", buffer[:max(n, 0)])
		return err
	},
	"unix": func(a []string) error {
		conn, err := net.Dial("unix", a[0])
		if err == nil {
			_ = conn.Close()
		}
		return err
	},
	"pair": func(a []string) error {
		kind, _ := strconv.Atoi(a[0])
		fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		if err != nil {
			return err
		}
		if err := unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: a[1]}); err != nil {
			return err
		}
		if n, _, err := unix.Recvfrom(fds[1], make([]byte, 10), unix.MSG_DONTWAIT); n == 1 {
			fmt.Println("the peer got it", err)
		}
		return nil
	},
	"socket": func(a []string) error {
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(a[i])
		}
		_, err := unix.Socket(n[0], n[1], n[2])
		return err
	},
	"address": func(a []string) error {
		request, err := unix.NewIfreq("lo:9")
		if err != nil {
			return err
		}
		if err := request.SetInet4Addr(net.ParseIP(a[0]).To4()); err != nil {
			return err
		}
		return configure(unix.SIOCSIFADDR, request)
	},
	"down": func([]string) error {
		request, err := unix.NewIfreq("lo")
		if err != nil {
			return err
		}
		return configure(unix.SIOCSIFFLAGS, request)
	},
	"descriptors": func([]string) error {
		for fd := 3; fd < 200; fd++ {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				return fmt.Errorf("%d is open", fd)
			}
		}
		fmt.Println("none are open")
		return nil
	},
	"capabilities": func([]string) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var sets [2]unix.CapUserData
		err := unix.Capget(&header, &sets[0])
		fmt.Println("effective", sets[0].Effective|sets[1].Effective, "permitted", sets[0].Permitted|sets[1].Permitted,
			"inheritable", sets[0].Inheritable|sets[1].Inheritable)
		return err
	},
	"setns": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, unix.CLONE_NEWNET)
	},
	"call": func(a []string) error {
		number, _ := strconv.Atoi(a[0])
		argument, _ := strconv.Atoi(a[1])
		if _, _, errno := syscall.Syscall(uintptr(number), uintptr(argument), 0, 0); errno != 0 {
			return errno
		}
		return nil
	},
	"memfd": func(a []string) error {
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return err
		}
		return run(fd, a[0])
	},
	"tmpfile": func(a []string) error {
		fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o700)
		if err != nil {
			return err
		}
		return run(fd, a[0])
	},
	"inotify": func(a []string) error {
		fd, err := unix.InotifyInit1(0)
		if err != nil {
			return err
		}
		_, err = unix.InotifyAddWatch(fd, a[0], unix.IN_ALL_EVENTS)
		return err
	},
	"dnotify": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, 4 /* DN_CREATE */)
		return err
	},
	"listen": func(a []string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if err := unix.Listen(fd, 5); err != nil { // without bind, so the kernel chooses the port
			return err
		}
		name, err := unix.Getsockname(fd)
		if err != nil {
			return err
		}
		bound, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(bound.Addr().String())
		text := fmt.Sprintf("127.0.0.1:%d 127.0.0.1:%s", name.(*unix.SockaddrInet4).Port, port)
		if err := os.WriteFile(a[0]+".new", []byte(text), 0o644); err != nil {
			return err
		}
		if err := os.Rename(a[0]+".new", a[0]); err != nil {
			return err
		}
		for { // until the host has tried, or the command's time is over
			if _, err := os.Stat(a[1]); err == nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
	},
	"flood": func(a []string) error {
		count, _ := strconv.Atoi(a[1])
		var open []net.Conn
		for range count {
			conn, err := net.DialTimeout("tcp", a[0], probeTime)
			if err != nil {
				break
			}
			if open = append(open, conn); len(open) == 200 { // close to the limit of open files, repeatedly
				for _, conn := range open[100:] {
					_ = conn.Close()
				}
				open = open[:100]
			}
		}
		return nil
	},
	"halves": func(a []string) error {
		count, _ := strconv.Atoi(a[1])
		for range count {
			conn, err := net.Dial("tcp", a[0])
			if err != nil {
				return err
			}
			if _, err := io.ReadFull(conn, make([]byte, 3)); err != nil {
				return err
			}
		}
		return nil
	},
	"leave": func(a []string) error {
		conn, err := net.Dial("tcp", a[0])
		if err != nil {
			return err
		}
		file, err := conn.(*net.TCPConn).File()
		if err != nil {
			return err
		}
		command := exec.Command("/usr/bin/setsid", "sleep", "3137")
		command.ExtraFiles = []*os.File{file}
		return command.Start()
	},
	"half-request": func(a []string) error {
		conn, err := dialProxy()
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, a[0])
		return err
	},
	"scan": func(a []string) error {
		count, _ := strconv.Atoi(a[0])
		for i := range count {
			conn, err := dialProxy()
			if err != nil {
				return err
			}
			fmt.Fprintf(conn, "CONNECT host%d.test:443 HTTP/1.1\r\nHost: x\r\n\r\n", i)
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.Contains(line, "403") {
				return fmt.Errorf("%q, %v", line, err)
			}
			_ = conn.Close()
		}
		return nil
	},
}

func configure(call uint, request *unix.Ifreq) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, call, request)
}

// run copies a program into an open file and executes it.
func run(fd int, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, data); err != nil {
		return err
	}
	return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"true", "--version"}, nil)
}

// dialProxy connects to the proxy that the environment names.
func dialProxy() (net.Conn, error) {
	u, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return nil, err
	}
	return net.DialTimeout("tcp", u.Host, probeTime)
}

// exchange sends text and "x", and prints the response.
func exchange(conn net.Conn, text string) error {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(probeTime))
	if _, err := io.WriteString(conn, text+"x"); err != nil {
		return err
	}
	_ = conn.(*net.TCPConn).CloseWrite() // it may be closed already
	_, err := io.Copy(os.Stdout, conn)
	return err
}

func probeSOCKS(a []string) error {
	conn, err := dialProxy()
	if err != nil {
		return err
	}
	port, _ := strconv.Atoi(a[1])
	request := append([]byte{5, 1, 0, 5, 1, 0, 3, byte(len(a[0]))}, a[0]...)
	if ip := net.ParseIP(a[0]); strings.Contains(a[0], ":") {
		request = append([]byte{5, 1, 0, 5, 1, 0, 4}, ip.To16()...)
	} else if ip != nil {
		request = append([]byte{5, 1, 0, 5, 1, 0, 1}, ip.To4()...)
	}
	if _, err := conn.Write(append(request, byte(port>>8), byte(port))); err != nil {
		return err
	}
	answer := make([]byte, 12)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	fmt.Print(answer[2], " ", answer[3], " ")
	return exchange(conn, "")
}
