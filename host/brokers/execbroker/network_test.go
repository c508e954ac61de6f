//go:build linux

package execbroker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/execbroker/gateway"
	"github.com/hako-run/hako/host/confine"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/judge"
)

// resolver resolves the names that the tests grant. A name with several lists of addresses returns the next list for
// each lookup.
type resolver struct {
	mu    sync.Mutex
	asked map[string]int
	names map[string][][]string
}

func (r *resolver) LookupNetIP(_ context.Context, _, host string) (addrs []netip.Addr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answers := r.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for _, a := range answers[min(r.asked[host], len(answers)-1)] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	r.asked[host]++
	return addrs, nil
}

// server sends a word on each connection and counts the connections.
type server struct {
	listener net.Listener
	port     string
	reached  atomic.Int64
	open     sync.WaitGroup
}

// newServer starts a server that sends word and then echoes.
func newServer(t testing.TB, network, address, word string) *server {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		testprogram.Missing(t, err.Error())
	}
	s := &server{listener: l}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.reached.Add(1)
			s.open.Go(func() {
				defer conn.Close()
				fmt.Fprint(conn, word)
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
	})
	return s
}

// networked is a shell with the probe program and granted servers.
type networked struct {
	*shell
	self     string
	dir      string
	granted  *server // granted as db.test and as 127.0.0.1
	endpoint *server // not granted, like hako's own endpoint
	seen     *observations
}

type observations struct {
	mu   sync.Mutex
	list []gateway.Observation
}

func (o *observations) add(one gateway.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, one)
}

// outcomes returns the sorted rules and outcomes of the connections so far.
func (o *observations) outcomes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []string
	for _, one := range o.list {
		list = append(list, one.Rule+" "+one.Outcome)
	}
	slices.Sort(list)
	return list
}

func newNetworked(t testing.TB) *networked {
	t.Helper()
	n := &networked{dir: workspace(t), seen: new(observations)}
	n.granted, n.endpoint = newServer(t, "tcp4", "127.0.0.1:0", "granted "),
		newServer(t, "tcp4", "127.0.0.1:0", "ENDPOINT ")
	self, err := os.Executable()
	must(t, err)
	n.self, err = filepath.EvalSymlinks(self)
	must(t, err)
	programs := []string{n.self, "cat", "sleep", "setsid", "env"}
	for _, program := range []string{"curl"} {
		if _, err := os.Stat("/usr/bin/" + program); err == nil {
			programs = append(programs, program)
		}
	}
	names := &resolver{asked: map[string]int{}, names: map[string][][]string{
		"db.test": {{"127.0.0.1"}}, "public.test": {{"127.0.0.1"}}, "a.wild.test": {{"127.0.0.1"}},
		"meta.test":   {{"169.254.169.254"}},
		"rebind.test": {{"192.88.99.1"}, {"127.0.0.1"}}, "mapped.test": {{"::ffff:127.0.0.1"}},
		"nat.test":  {{"64:ff9b::7f00:1"}},
		"zero.test": {{"0.0.0.0"}}, "six.test": {{"::1"}}, "localhost": {{"10.0.0.1"}},
	}}
	connect := []string{"db.test:" + n.granted.port + ":private", "127.0.0.1:" + n.granted.port,
		"*.wild.test:" + n.granted.port + ":private"}
	for _, name := range []string{"public", "meta", "rebind", "mapped", "nat", "zero", "six"} {
		connect = append(connect, name+".test:"+n.endpoint.port)
	}
	g := &grant.Exec{Programs: programs, Connect: connect}
	n.shell = newShell(t, n.dir, g, execbroker.Options{
		Rules: func() []judge.Rule { return []judge.Rule{execbroker.AllowAll} }, Resolver: names,
		ObserveConnection: n.seen.add,
	})
	return n
}

// probe runs an operation of the probe program as a command.
func (n *networked) probe(argv ...string) *result {
	n.t.Helper()
	return n.run(map[string]any{"command": n.self, "args": append([]string{probeWord}, argv...)})
}

// TestCommandNetwork: programs reach the granted hosts, with and without support for proxies.
func TestCommandNetwork(t *testing.T) {
	t.Parallel()
	n := newNetworked(t)
	port, other := n.granted.port, n.endpoint.port
	for _, test := range []struct {
		name string
		argv []string
		out  string
		errs string
	}{
		{"by its name", []string{"say", "db.test:" + port}, "granted x", ""},
		{"by its address", []string{"say", "127.0.0.1:" + port}, "granted x", ""},
		{"by a tunnel", []string{"tunnel", "db.test:" + port}, "HTTP/1.1 200 Connection established\r\n\r\ngranted x",
			""},
		{"by a tunnel to a wildcard", []string{"tunnel", "A.Wild.Test.:" + port},
			"HTTP/1.1 200 Connection established\r\n\r\ngranted x", ""},
		{"by SOCKS and name", []string{"socks", "db.test", port}, "5 0 granted x", ""},
		{"by SOCKS and address", []string{"socks", "127.0.0.1", port}, "5 0 granted x", ""},
		{"a server of its own", []string{"itself"}, "x", ""},
		{"not granted", []string{"tunnel", "evil.test:443"}, "HTTP/1.1 403 Forbidden",
			"hako: the connection to evil.test:443 is not granted: the commands of plugin shell may connect to "},
		{"the remedy", []string{"tunnel", "db.test:1"}, "403 Forbidden",
			". The operator can grant it: hako plugin approve shell --connect db.test:1, with the others\n"},
		{"a private address", []string{"tunnel", "public.test:" + other}, "403 Forbidden",
			"public.test is at a loopback address, which the grant public.test:" + other +
				" does not allow. The operator can grant private addresses of that host: " +
				"hako plugin approve shell --connect public.test:" + other + ":private, with the others\n"},
		{"SOCKS to what is not granted", []string{"socks", "evil.test", "443"}, "5 2",
			"hako: the connection to evil.test:443 is not granted"},
		{"nothing listens", []string{"tunnel", "nobody.wild.test:" + port}, "502 Bad Gateway",
			"hako: the connection to nobody.wild.test:" + port + " failed: no such host\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := n.probe(test.argv...)
			if !strings.Contains(r.Stdout, test.out) || !strings.Contains(r.Stderr, test.errs) ||
				test.errs == "" && r.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestCommandCurl runs curl.
func TestCommandCurl(t *testing.T) {
	t.Parallel()
	testprogram.Find(t, "curl")
	n := newNetworked(t)
	// The server does not speak HTTP, which curl's telnet does not need.
	r := n.line("echo -n | curl -sS -m 5 telnet://db.test:" + n.granted.port)
	if !strings.Contains(r.Stdout, "granted") {
		t.Errorf("by name: %+v", r)
	}
	r = n.line("curl -sS -m 5 https://evil.test/")
	if r.ExitCode == 0 || !strings.Contains(r.Stderr, "response 403") ||
		!strings.Contains(r.Stderr, "hako: the connection to evil.test:443 is not granted") {
		t.Errorf("not granted: %+v", r)
	}
	r = n.line("curl -sS -m 5 http://evil.test/")
	if !strings.HasPrefix(r.Stdout, "hako: the connection to evil.test:80 is not granted") {
		t.Errorf("plain, not granted: %+v", r)
	}
}

// TestNoNamespaces: without network namespaces a grant of hosts is refused, and no command falls back to the host's
// network.
func TestNoNamespaces(t *testing.T) {
	t.Parallel()
	without, with := confine.Support{Landlock: 7, Filter: true}, confine.Support{Landlock: 7,
		Filter: true, Namespaces: true}
	granted := &grant.Exec{Programs: []string{"git"}, Connect: []string{"github.com:443"}}
	err := execbroker.UnconfinableOn(without, "shell", granted)
	if err == nil {
		t.Fatal("hosts are granted without namespaces")
	}
	for _, want := range []string{"cannot restrict commands to the granted hosts (github.com:443)",
		"kernel.unprivileged_userns_clone=1",
		"hako plugin approve shell --connect ''",
		"where they reach every host: hako plugin approve shell --unconfined"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := errors.Join(execbroker.UnconfinableOn(with, "shell", granted),
		execbroker.UnconfinableOn(without, "shell", &grant.Exec{Programs: []string{"git"}})); err != nil {
		t.Error(err)
	}
}

// TestNoNetwork: without a grant a command cannot create sockets.
func TestNoNetwork(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	s := newShell(t, workspace(t), &grant.Exec{Programs: []string{self}},
		execbroker.Options{Rules: func() []judge.Rule { return []judge.Rule{execbroker.AllowAll} }})
	for _, argv := range [][]any{{"say", "127.0.0.1:80"}, {"itself"}, {"send", "127.0.0.1:53"}} {
		r := s.run(map[string]any{"command": self, "args": append([]any{probeWord}, argv...)})
		if r.ExitCode == 0 || !strings.Contains(r.Stderr, "operation not permitted") {
			t.Errorf("%v: %+v", argv, r)
		}
	}
}

// TestHostileCommandNetwork attacks the network from a command, with system calls and through the proxy.
func TestHostileCommandNetwork(t *testing.T) {
	t.Parallel()
	n := newNetworked(t)
	six := newServer(t, "tcp6", "[::1]:0", "ENDPOINT ")
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	must(t, err)
	defer udp.Close()
	everywhere, err := net.ListenPacket("udp4", "0.0.0.0:0")
	must(t, err)
	defer everywhere.Close()
	socket := filepath.Join(n.dir, "socket")
	datagrams, err := net.ListenPacket("unixgram", socket)
	must(t, err)
	defer datagrams.Close()
	abstract := "@hako-test-" + strconv.Itoa(os.Getpid())
	streams, err := net.Listen("unix", abstract)
	must(t, err)
	defer streams.Close()
	port, endpoint := n.granted.port, n.endpoint.port
	_, everyport, _ := net.SplitHostPort(everywhere.LocalAddr().String())
	must(t, os.WriteFile(filepath.Join(n.dir, "payload"), executable(t), 0o755))

	// The group returns after all attacks, so that connections are counted afterwards.
	t.Run("attack", func(t *testing.T) {
		for _, test := range []struct {
			name string
			argv []string
			want string // part of stdout or stderr
		}{
			{"connect to hako's endpoint", []string{"say", "127.0.0.1:" + endpoint}, "connection refused"},
			{"fast open to hako's endpoint", []string{"fastopen", "127.0.0.1:" + endpoint}, "connection refused"},
			{"fast open to the granted port of another address", []string{"fastopen",
				"127.0.0.2:" + port}, "connection refused"},
			{"fast open to the cloud's metadata", []string{"fastopen", "169.254.169.254:80"}, "unreachable"},
			{"connect by IPv6", []string{"say", "[::1]:" + six.port}, "connection refused"},
			{"connect by a mapped address", []string{"say", "[::ffff:127.0.0.1]:" + endpoint}, "connection refused"},
			{"connect to a public address", []string{"say", "1.1.1.1:443"}, "unreachable"},
			{"connect to a public IPv6 address", []string{"say", "[2606:4700::1111]:443"}, "unreachable"},
			{"connect to the metadata service", []string{"say", "169.254.169.254:80"}, "unreachable"},
			{"connect to any address", []string{"say", "0.0.0.0:" + endpoint}, "connection refused"},
			{"a datagram to the host", []string{"send", udp.LocalAddr().String()}, ""},
			{"a datagram to any address", []string{"send", "0.0.0.0:" + everyport}, ""},
			{"a datagram to a broadcast", []string{"send", "255.255.255.255:" + everyport},
				"unreachable|permission denied"},
			{"a datagram to a group", []string{"send", "224.0.0.1:" + everyport}, "unreachable"},
			{"a datagram to a public address", []string{"send", "1.1.1.1:53"}, "unreachable"},
			{"a question to a name server", []string{"lookup", "evil.test"}, "no such host"},
			{"a name behind a wildcard", []string{"say", "b.wild.test:" + port}, "no such host"},
			{"an abstract socket of the host", []string{"unix", abstract}, "address family not supported"},
			{"a socket with a path", []string{"unix", socket}, "address family not supported"},
			{"a datagram from a raw pair", []string{"pair", strconv.Itoa(unix.SOCK_RAW), socket},
				"address family not supported"},
			{"a datagram from a pair", []string{"pair", strconv.Itoa(unix.SOCK_DGRAM), socket},
				"address family not supported"},
			{"a stream pair sent elsewhere", []string{"pair", strconv.Itoa(unix.SOCK_STREAM),
				socket}, "already connected"},
			{"a packet pair sent elsewhere", []string{"pair", strconv.Itoa(unix.SOCK_SEQPACKET), socket},
				"peer got it"},
			{"raw packets", []string{"socket", "2", "3", "255"}, "address family not supported"},
			{"raw TCP", []string{"socket", "2", "3", "6"}, "address family not supported"},
			{"packets of the interface", []string{"socket", "17", "3", "768"}, "address family not supported"},
			{"packets in another way", []string{"socket", "2", "10", "0"}, "address family not supported"},
			{"netlink", []string{"socket", "16", "3", "0"}, "address family not supported"},
			{"the hypervisor", []string{"socket", "40", "1", "0"}, "address family not supported"},
			{"the kernel's ciphers", []string{"socket", "38", "5", "0"}, "address family not supported"},
			{"Bluetooth", []string{"socket", "31", "3", "1"}, "address family not supported"},
			{"multipath TCP", []string{"socket", "2", "1", "262"}, "address family not supported"},
			{"SCTP", []string{"socket", "2", "1", "132"}, "address family not supported"},
			{"ping", []string{"socket", "2", "2", "1"}, "address family not supported"},
			{"UDP without checksums", []string{"socket", "2", "2", "136"}, "address family not supported"},
			{"DCCP", []string{"socket", "2", "6", "33"}, "address family not supported"},
			{"TCP with bits beside the kind", []string{"socket", "2", "4097", "0"}, "address family not supported|invalid argument"},
			{"packets past the kernel", []string{"socket", "44", "3", "0"}, "address family not supported"},
			{"sockets of a cluster", []string{"socket", "30", "1", "0"}, "address family not supported"},
			{"sockets of a shared memory", []string{"socket", "43", "1", "0"}, "address family not supported"},
			{"keys of the kernel", []string{"socket", "15", "3", "2"}, "address family not supported"},
			{"open files of the host's", []string{"descriptors"}, "none are open"},
			{"rights over its namespaces", []string{"capabilities"}, "effective 0 permitted 0 inheritable 0"},
			{"an address of the host's", []string{"address", "10.11.12.13"}, "not permitted"},
			{"the interface down", []string{"down"}, "not permitted"},
			{"the network of another process", []string{"setns", "/proc/1/ns/net"},
				"permission denied|not permitted|no such file"},
			{"a new network", []string{"call", strconv.Itoa(unix.SYS_UNSHARE),
				strconv.Itoa(unix.CLONE_NEWNET)}, "not permitted"},
			{"rings of the kernel", []string{"call", strconv.Itoa(unix.SYS_IO_URING_SETUP), "8"}, "not permitted"},
			{"a program in memory", []string{"memfd", "payload"}, "not permitted"},
			{"a program in a file without a name", []string{"tmpfile", "payload"}, "permission denied|text file busy"},
			{"watch the system's files", []string{"inotify", "/etc"}, "not permitted"},
			{"watch files of others", []string{"inotify", os.TempDir()}, "not permitted"},
			{"watch own files", []string{"inotify", "."}, "not permitted"},
			{"watch in an older way", []string{"dnotify", "/etc"}, "permission denied"},
			{"watch everything", []string{"call", strconv.Itoa(unix.SYS_FANOTIFY_INIT), "0"}, "not permitted"},
			{"list mounts of the host", []string{"call", strconv.Itoa(unix.SYS_LISTMOUNT), "0"}, "not permitted"},

			{"a tunnel to hako's endpoint", []string{"tunnel", "127.0.0.1:" + endpoint}, "403 Forbidden"},
			{"a tunnel to localhost", []string{"tunnel", "localhost:" + endpoint}, "403 Forbidden"},
			{"a tunnel to localhost on the granted port", []string{"tunnel", "localhost:" + port}, "403 Forbidden"},
			{"a tunnel to a number", []string{"tunnel", "2130706433:" + endpoint}, "403 Forbidden|400 Bad Request"},
			{"a tunnel to a short address", []string{"tunnel", "127.1:" + endpoint}, "403 Forbidden|400 Bad Request"},
			{"a tunnel to an octal address", []string{"tunnel", "0177.0.0.1:" + endpoint}, "403 Forbidden|400 Bad Request"},
			{"a tunnel to a name with a dot", []string{"tunnel", "localhost.:" + endpoint}, "403 Forbidden"},
			{"a tunnel to a name in other letters", []string{"tunnel", "LOCALHOST:" + endpoint}, "403 Forbidden"},
			{"a tunnel to an address with a zone", []string{"tunnel", "[::1%25lo]:" + six.port}, "403 Forbidden|400 Bad Request"},
			{"a tunnel to a port of six digits", []string{"tunnel", "127.0.0.1:0" + endpoint}, "403 Forbidden|400 Bad Request"},
			{"SOCKS to a number", []string{"socks", "2130706433", endpoint}, "5 2"},
			{"a tunnel by IPv6", []string{"tunnel", "[::1]:" + six.port}, "403 Forbidden"},
			{"a tunnel to the metadata service", []string{"tunnel", "169.254.169.254:80"}, "403 Forbidden"},
			{"a name at the metadata service", []string{"tunnel", "meta.test:" + endpoint},
				"meta.test is at a cloud metadata address"},
			{"a name at a mapped address", []string{"tunnel", "mapped.test:" + endpoint},
				"mapped.test is at a loopback address"},
			{"a name at a translated address", []string{"tunnel", "nat.test:" + endpoint},
				"nat.test is at a loopback address"},
			{"a name at no address", []string{"tunnel", "zero.test:" + endpoint},
				"zero.test is at an unspecified address, which no grant allows"},
			{"a name at an IPv6 address", []string{"tunnel", "six.test:" + endpoint},
				"six.test is at a loopback address"},
			{"a name at a private address, by its alias", []string{"say", "public.test:" + endpoint},
				"reset by peer|connection reset"},
			{"SOCKS to hako's endpoint", []string{"socks", "127.0.0.1", endpoint}, "5 2"},
			{"SOCKS to an IPv6 address", []string{"socks", "::1", six.port}, "5 2"},
			{"SOCKS to a mapped address", []string{"socks", "::ffff:127.0.0.1", endpoint}, "5 2"},
			{"the proxy through the proxy", []string{"tunnel", "127.64.0.1:3128"}, "403 Forbidden"},
			{"an alias through the proxy", []string{"tunnel", "127.64.1.1:" + port}, "403 Forbidden"},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				r := n.probe(test.argv...)
				text := r.Stdout + r.Stderr + r.refusal
				held := test.want == ""
				for want := range strings.SplitSeq(test.want, "|") {
					held = held || strings.Contains(text, want)
				}
				if !held || strings.Contains(text, "ENDPOINT ") {
					t.Errorf("want %s: %+v", test.want, r)
				}
			})
		}
		t.Run("a name that moves", func(t *testing.T) {
			t.Parallel()
			for range 3 {
				if r := n.probe("tunnel", "rebind.test:"+endpoint); !strings.Contains(r.Stdout, "403 Forbidden") {
					t.Errorf("%+v", r)
				}
			}
		})
		t.Run("listening for the host", func(t *testing.T) {
			t.Parallel()
			n.listens(t)
		})
	})
	if got := n.endpoint.reached.Load() + six.reached.Load(); got != 0 {
		t.Errorf("a server that is not granted was reached %d times", got)
	}
	for name, conn := range map[string]net.PacketConn{"UDP": udp, "UDP at any address": everywhere,
		"a socket with a path": datagrams} {
		_ = conn.SetReadDeadline(time.Now())
		if got, from, err := conn.ReadFrom(make([]byte, 10)); err == nil {
			t.Errorf("%s got %d bytes from %v", name, got, from)
		}
	}
}

// listens runs a command that listens without bind, and tries to reach it from the host.
func (n *networked) listens(t *testing.T) {
	t.Helper()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if r := n.probe("listen", "listening", "tried"); r.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	})
	var text []byte
	if !testwait.Until(t, func() bool {
		text,
			_ = os.ReadFile(filepath.Join(n.dir, "listening"))
		return len(text) > 0
	}) {
		t.Error("the command does not listen")
	}
	for address := range strings.FieldsSeq(string(text)) {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = conn.Close()
			t.Errorf("the host reaches %s of a command", address)
		}
	}
	must(t, os.WriteFile(filepath.Join(n.dir, "tried"), nil, 0o644))
}

// TestHostileCommandConnections: endless connections neither exhaust the host nor outlive the command.
func TestHostileCommandConnections(t *testing.T) {
	n := newNetworked(t)
	n.probe("say", "db.test:"+n.granted.port) // creates everything that is created once
	before := runtime.NumGoroutine()
	for _, test := range []struct {
		name string
		argv []string
		want string
	}{
		{"two thousand to a granted host", []string{"flood", "db.test:" + n.granted.port, "2000"},
			"hako: a connection is refused: a command may have at most 64 at once\n"},
		{"two thousand to the proxy that say nothing", []string{"flood", "127.64.0.1:3128", "2000"},
			"hako: a connection is refused: a command may have at most 64 at once\n"},
		{"half-open ones", []string{"halves", "db.test:" + n.granted.port, "40"}, ""},
		{"ones that are left open in the background", []string{"leave", "db.test:" + n.granted.port}, ""},
		{"half a request", []string{"half-request", "CONNECT db.test:" + n.granted.port + " HTTP/1.1\r\nHost:"}, ""},
		{"half a greeting", []string{"half-request", "\x05"}, ""},
		{"a thousand hosts that are not granted", []string{"scan", "1000"},
			"hako: more connections were refused or failed\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := n.granted.reached.Load()
			r := n.probe(test.argv...)
			if !strings.Contains(r.Stderr, test.want) || len(r.Stderr) > 8<<10 {
				t.Errorf("%+v", r)
			}
			if got := n.granted.reached.Load() - start; got > 200 {
				t.Errorf("the server was reached %d times", got)
			}
			n.granted.open.Wait() // the server's sides have ended too
		})
	}
	if !testwait.Until(t, func() bool { return runtime.NumGoroutine() <= before+5 }) {
		buffer := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buffer[:runtime.Stack(buffer, true)])
	}
	if got := n.seen.outcomes(); !slices.Contains(got, " busy") || !slices.Contains(got, " refused") ||
		!slices.Contains(got, "db.test:"+n.granted.port+":private ok") {
		t.Errorf("observed %d connections: %q", len(got), got[:min(len(got), 10)])
	}
	left(t, n.shell)
}

func executable(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("/bin/true")
	must(t, err)
	return data
}
