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

	"github.com/hako-run/hako/host/judge"
)

// Main runs the child or the supervisor, without returning, if this process was started as one. A program that uses Run
// must call it first.
func Main() {
	ready.Store(true)
	if len(os.Args) != 1 {
		return
	}
	// Under the race detector os.Exit would wait for a second.
	switch os.Args[0] {
	case confineName:
		syscall.Exit(runChild())
	case supervisorName:
		syscall.Exit(supervise())
	case probeName:
		syscall.Exit(probe())
	}
}

// ready is set by Main. Without Main, a child would run the whole program.
var ready atomic.Bool

// runChild restricts this process and starts the supervisor.
func runChild() int {
	// The supervisor is started by this thread and ends with it (Pdeathsig).
	runtime.LockOSThread()
	control, lifeline := os.NewFile(controlFD, "control"), os.NewFile(lifelineFD, "lifeline")
	err := startSupervisor(control, lifeline)
	if err == nil {
		return 0
	}
	_ = json.NewEncoder(control).Encode(message{Failed: "confine the command: " + err.Error()})
	return 1
}

func startSupervisor(control, lifeline *os.File) error {
	if err := setCloseOnExec(); err != nil {
		return err
	}
	described := os.NewFile(specFD, "spec")
	o, err := readChildSpec(described)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(self)
	command.Args, command.Env = []string{supervisorName}, []string{}
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
	if err := unblockSignals(); err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		_, _ = lifeline.Read(make([]byte, 1)) // returns when the host ends
		_ = command.Process.Kill()
	}()
	_ = command.Wait() // the supervisor has reported how the command ended
	return nil
}

// childSpec is the child's input.
type childSpec struct {
	*Spec
	// Namespaces reports whether the child is in new namespaces.
	Namespaces bool
}

func readChildSpec(file *os.File) (*childSpec, error) {
	o := &childSpec{Spec: new(Spec)}
	if err := json.NewDecoder(io.NewSectionReader(file, 0, 1<<30)).Decode(o); err != nil {
		return nil, fmt.Errorf("read the command's specification: %w", err)
	}
	return o, nil
}

// supervise runs the command and reports how it ended.
func supervise() int {
	// The command may signal its own processes, but not end the supervisor, which catches all signals and drops them. It
	// does not ignore them, because programs inherit ignored signals: those that are started by this process have the
	// default action of every signal, also of those that the host ignores.
	signal.Notify(make(chan os.Signal, 1))
	control := os.NewFile(controlFD, "control")
	w := &supervisor{answers: json.NewDecoder(control), messages: json.NewEncoder(control)}
	var exit *Exit
	err := resetIgnoredSignals()
	if err == nil {
		exit, err = w.run(context.Background())
	}
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

// supervisor judges and starts the command's programs.
type supervisor struct {
	spec  *Spec
	judge *judge.Judge

	// mu serializes questions and guards unjudged.
	mu       sync.Mutex
	answers  *json.Decoder
	messages *json.Encoder
	// unjudged becomes Exit.Unjudged.
	unjudged []string
}

func (s *supervisor) run(ctx context.Context) (*Exit, error) {
	o, err := readChildSpec(os.NewFile(specFD, "spec"))
	if err != nil {
		return nil, err
	}
	s.spec = o.Spec
	if err := setCloseOnExec(); err != nil {
		return nil, err
	}
	if err := limitProcesses(o); err != nil {
		return nil, err
	}
	if err := filterSelf(o); err != nil && !o.Loose {
		return nil, err
	}
	if s.judge, err = judge.New(s.spec.Rules, s.spec.Named()); err != nil {
		return nil, err
	}
	if err := os.Chdir(s.spec.Dir); err != nil {
		return nil, err
	}
	for _, variable := range s.spec.Env {
		if name, value := split(variable); name == "TMPDIR" {
			if err := os.Setenv(name, value); err != nil { // for named pipes of the interpreter
				return nil, err
			}
		}
	}
	devNull, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	here := procEnv{dir: s.spec.Dir, env: s.spec.Env, stdin: devNull, stdout: os.Stdout, stderr: os.Stderr}
	if len(s.spec.Argv) > 0 {
		err = s.exec(ctx, here, s.spec.Argv)
	} else {
		err = s.interpret(ctx, here, s.spec.Line, "", []string{"--"})
	}
	return exitOf(err)
}

// exitOf returns how the command ended, from the error of its last program.
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

// ask sends a question to the host and waits for the reply.
func (s *supervisor) ask(q Question) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.messages.Encode(message{Ask: &q}); err != nil {
		return err
	}
	var a reply
	if err := s.answers.Decode(&a); err != nil {
		return err
	}
	if a.No != "" {
		return errors.New(a.No)
	}
	return nil
}
