package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hako-run/hako/host/broker/exec/judge"
)

// Main does the child's work and does not return, if this process is one. A program that calls Run calls it first of
// all.
func Main() {
	ready.Store(true)
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case confineName:
		os.Exit(confined())
	case watchName:
		os.Exit(watch())
	case probeName:
		os.Exit(probe())
	}
}

// ready says that Main was called: otherwise a child would be one more of the whole program.
var ready atomic.Bool

// confined gives up rights and starts the process that watches over the command.
func confined() int {
	// The other process is started by this thread and ends with it.
	runtime.LockOSThread()
	control, lifeline := os.NewFile(controlFD, "control"), os.NewFile(lifelineFD, "lifeline")
	err := startWatch(control, lifeline)
	if err == nil {
		return 0
	}
	_ = json.NewEncoder(control).Encode(message{Failed: "confine the command: " + err.Error()})
	return 1
}

func startWatch(control, lifeline *os.File) error {
	if err := keepFilesFromPrograms(); err != nil {
		return err
	}
	described := os.NewFile(orderFD, "order")
	o, err := readOrder(described)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self)
	command.Args, command.Env = []string{watchName}, []string{}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{control, described}
	network := os.NewFile(networkFD, "network")
	if o.Namespaces {
		if err := passListeners(o, network); err != nil {
			return err
		}
	}
	if err := network.Close(); err != nil {
		return err
	}
	if err := confineSelf(o, self); err != nil && !o.Loose {
		return err
	}
	if err := isolate(command, o); err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = lifeline.Read(make([]byte, 1)) // ends with the host
		_ = command.Process.Kill()
	}()
	_ = command.Wait() // it has said itself how the command ended
	return nil
}

// order is what the child is told.
type order struct {
	*Spec
	// Namespaces says that it is in namespaces of its own.
	Namespaces bool
}

func readOrder(file *os.File) (*order, error) {
	o := &order{Spec: new(Spec)}
	if err := json.NewDecoder(io.NewSectionReader(file, 0, 1<<30)).Decode(o); err != nil {
		return nil, fmt.Errorf("read what to run: %w", err)
	}
	return o, nil
}

// watch runs the command and says how it ended.
func watch() int {
	// The command may signal its own processes. In a namespace of its own this one is safe from all signals that it
	// ignores.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE)
	control := os.NewFile(controlFD, "control")
	w := &watcher{answers: json.NewDecoder(control), messages: json.NewEncoder(control)}
	exit, err := w.run(context.Background())
	if exit != nil {
		exit.Unjudged = w.unjudged
	}
	m := message{Exit: exit}
	if err != nil {
		m.Failed = err.Error()
	}
	if err := w.messages.Encode(m); err != nil {
		return 1
	}
	return 0
}

// watcher starts the command's programs, each after it was judged.
type watcher struct {
	spec  *Spec
	judge *judge.Judge

	// mu serialises questions, and guards unjudged.
	mu       sync.Mutex
	answers  *json.Decoder
	messages *json.Encoder
	// unjudged are the programs that started without a rule that could look into them.
	unjudged []string
}

func (w *watcher) run(ctx context.Context) (*Exit, error) {
	o, err := readOrder(os.NewFile(orderFD, "order"))
	if err != nil {
		return nil, err
	}
	w.spec = o.Spec
	if err := keepFilesFromPrograms(); err != nil {
		return nil, err
	}
	if err := limitProcesses(o); err != nil {
		return nil, err
	}
	if err := filterSelf(o); err != nil && !o.Loose {
		return nil, err
	}
	if w.judge, err = judge.New(w.spec.Rules, w.spec.Named()); err != nil {
		return nil, err
	}
	if err := os.Chdir(w.spec.Dir); err != nil {
		return nil, err
	}
	for _, variable := range w.spec.Env {
		if name, value := split(variable); name == "TMPDIR" {
			if err := os.Setenv(name, value); err != nil { // for the shell's own pipes
				return nil, err
			}
		}
	}
	devNull, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	here := place{dir: w.spec.Dir, env: w.spec.Env, stdin: devNull, stdout: os.Stdout, stderr: os.Stderr}
	if len(w.spec.Argv) > 0 {
		err = w.exec(ctx, here, w.spec.Argv)
	} else {
		err = w.interpret(ctx, here, w.spec.Line, "", []string{"--"})
	}
	return exitOf(err)
}

// exitOf is how the command ended, from the error of its last program.
func exitOf(err error) (*Exit, error) {
	var status *statusError
	switch {
	case err == nil:
		return &Exit{}, nil
	case errors.As(err, &status):
		return &status.exit, nil
	}
	return nil, err
}

// ask puts a question to the host.
func (w *watcher) ask(q Question) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.messages.Encode(message{Ask: &q}); err != nil {
		return err
	}
	var a answer
	if err := w.answers.Decode(&a); err != nil {
		return err
	}
	if a.No != "" {
		return errors.New(a.No)
	}
	return nil
}
