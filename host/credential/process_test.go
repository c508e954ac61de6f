package credential

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
)

// The environment variables childDir and childServer make the test binary run child.
const (
	childDir    = "HAKO_TEST_DIR"
	childServer = "HAKO_TEST_SERVER"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && commands[os.Args[1]] != nil {
		syscall.Exit(commands[os.Args[1]](os.Args[2]))
	}
	if dir := os.Getenv(childDir); dir != "" {
		child(dir, os.Getenv(childServer))
		syscall.Exit(0)
	}
	os.Exit(m.Run())
}

// commands are functions of the test binary that serve as commands of a secret.Source on every system. They return the
// exit code.
var commands = map[string]func(string) int{
	"echo": func(text string) int { fmt.Println(text); return 0 },
	"cat": func(path string) int {
		data, err := os.ReadFile(path)
		if err != nil {
			return 1
		}
		fmt.Print(string(data))
		return 0
	},
	"fail": func(text string) int {
		fmt.Println(text)
		fmt.Fprintln(os.Stderr, text)
		return 3
	},
}

// command returns a secret.Source that runs one of commands.
func command(name, argument string) secret.Source {
	return secret.Source{Command: []string{os.Args[0], name, argument}}
}

// child serves the commands of standard input, a line each. "get" prints the header value that a request would carry,
// or the error. "read" reads the connection, and "renew" renews what was read: the steps of a request whose token has
// expired.
func child(dir, server string) {
	b, err := New(options(dir, freeeSpec(server)))
	if err != nil {
		panic(err)
	}
	s, err := b.slot(id{name: "freee"})
	if err != nil {
		panic(err)
	}
	c := s.(*connection)
	var seen *record
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		value := ""
		switch lines.Text() {
		case "get":
			var header *broker.Credential
			if header, err = b.Credential(context.Background(), "", "freee"); err == nil {
				value = strings.TrimPrefix(header.Value, "Bearer ")
			}
		case "read":
			if seen, err = c.load(context.Background()); err == nil {
				value = seen.AccessToken
			}
		case "renew":
			var fresh *record
			if fresh, err = c.renewed(context.Background(), seen); err == nil {
				value = fresh.AccessToken
			}
		}
		if err != nil {
			value = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(value)
	}
	_ = b.Close()
}

// process is a child process.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, dir, server string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), childDir+"="+dir, childServer+"="+server)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

// send sends a command to the child. answer reads the result.
func (p *process) send(t *testing.T, command string) {
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		t.Error(err)
	}
}

func (p *process) answer(t *testing.T) string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(line)
}

// shared creates a directory with a connection, and its server, for several processes.
func shared(t *testing.T, expires time.Duration) (s *authServer, server, dir string) {
	dir = t.TempDir()
	s, server = connected(t, dir, expires)
	return s, server, dir
}

// places create the stores that processes share.
var places = map[string]func(*testing.T) string{
	"sqlite":   func(t *testing.T) string { return t.TempDir() },
	"postgres": func(t *testing.T) string { return postgrestest.Start(t) },
}

// connected creates a connection in the store at dir, and its server.
func connected(t *testing.T, dir string, expires time.Duration) (s *authServer, server string) {
	s = newAuthServer(t)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	b := newBroker(t, options(dir, freeeSpec(web.URL)))
	storeConnection(t, b, "", -6*time.Hour, expires)
	return s, web.URL
}

// TestProcessesRenewOnce: processes that have read the same expired token renew it once.
func TestProcessesRenewOnce(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testProcessesRenewOnce(t, place(t))
		})
	}
}

func testProcessesRenewOnce(t *testing.T, dir string) {
	s, server := connected(t, dir, -time.Minute)
	processes := make([]*process, 4)
	for i := range processes {
		processes[i] = start(t, dir, server)
		processes[i].send(t, "read")
		if got := processes[i].answer(t); got != "access-0000" {
			t.Fatalf("read %s", got)
		}
	}
	for _, p := range processes {
		p.send(t, "renew")
	}
	for _, p := range processes {
		if got := p.answer(t); got != "access-0001" {
			t.Errorf("got %s", got)
		}
	}
	if n := s.refreshes(); n != 1 {
		t.Errorf("%d renewals, want 1", n)
	}
}

// TestCrashWhileRenewing kills a process after its refresh token was sent and before the response.
func TestCrashWhileRenewing(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		for what, expires := range map[string]time.Duration{"the old token works": time.Minute,
			"it does not": -time.Minute} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				testCrashWhileRenewing(t, place(t), expires)
			})
		}
	}
}

func testCrashWhileRenewing(t *testing.T, dir string, expires time.Duration) {
	s, server := connected(t, dir, expires)
	arrived, killed := make(chan bool), make(chan bool)
	s.before = func(http.ResponseWriter, url.Values) bool {
		arrived <- true
		<-killed
		return false
	}
	p := start(t, dir, server)
	p.send(t, "get")
	<-arrived
	b := newBroker(t, options(dir, freeeSpec(server)))
	if status := only(t, b); status.State != Ready {
		t.Errorf("while it is renewed: %+v", status)
	}
	if err := p.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = p.Wait()
	close(killed)
	if store.IsURL(dir) {
		age(t, b)
	}
	if status := only(t, b); status.State != Reconnect || !strings.Contains(status.Remedy,
		"hako stopped during a renewal at ") {
		t.Errorf("after the crash: %+v", status)
	}
	got := token(t, b, "")
	if expires > 0 && got != "access-0000" || expires < 0 && (!strings.Contains(got, "has to be connected again") ||
		!strings.Contains(got, "hako stopped during a renewal at ")) {
		t.Errorf("after the crash: %s", got)
	}
	if n := s.refreshes(); n != 1 {
		t.Errorf("%d renewals, want 1: a used refresh token was sent again", n)
	}
}

// age waits until the unfinished renewal of another replica counts as failed. Until then the connection is neither
// ended nor renewed, because that replica may only have lost its lock.
func age(t *testing.T, b *Broker) {
	t.Helper()
	if status := only(t, b); status.State == Reconnect {
		t.Errorf("at once after the crash: %+v", status)
	}
	r, err := b.vault.get(t.Context(), id{name: "freee"})
	if err != nil || r.Renewing.IsZero() {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Renewing = r.Renewing.Add(-lostTime)
	if err := b.vault.put(t.Context(), id{name: "freee"}, r); err != nil {
		t.Fatal(err)
	}
}

// hurry makes transactions of a Broker fail at once while another process writes. The usual timeout of SQLite is 30 s.
func hurry(t *testing.T, b *Broker) {
	t.Helper()
	st, err := b.vault.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = st.View(t.Context(), func(tx *sql.Tx) error { // the next transaction uses the same connection
		_, err := tx.ExecContext(t.Context(), "PRAGMA busy_timeout = 1")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLockedDatabase: a renewal does not start while its start cannot be stored.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	s, server, dir := shared(t, time.Minute)
	b := newBroker(t, options(dir, freeeSpec(server)))
	holder := newBroker(t, options(dir, freeeSpec(server)))
	st, err := holder.vault.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hurry(t, b)
	err = st.Update(t.Context(), func(*sql.Tx) error {
		if got := token(t, b, ""); got != "access-0000" {
			t.Errorf("while the database is locked: %s", got)
		}
		return nil
	})
	if err != nil || s.refreshes() != 0 {
		t.Errorf("%v, %d renewals", err, s.refreshes())
	}
	b.slots = map[id]slot{} // forget the failure
	if got := token(t, b, ""); got != "access-0001" {
		t.Errorf("afterwards: %s", got)
	}
}
