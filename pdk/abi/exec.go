package abi

// ExecModule belongs to the permission exec.
const ExecModule = "hako:exec/1"

// ExecRequest is what a guest passes to "start" of ExecModule. Exactly one of Argv and Line is set.
type ExecRequest struct {
	// Argv is a program with its arguments, each of which the program gets as it is.
	Argv []string `json:"argv,omitempty"`
	// Line is a line in a shell's language.
	Line string `json:"line,omitempty"`
	// Cwd is the directory to work in: as the guest sees it ("/workspace/sub"), as the host does, or relative to the first mount.
	// Empty means the first mount, or an empty directory where there is none.
	Cwd string `json:"cwd,omitempty"`
	// TimeoutMS bounds the command, in milliseconds, time that a person takes to agree not counted; zero leaves it to the call's deadline.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
}

// ExecStarted answers "start": the command's handle, or Error alone.
type ExecStarted struct {
	Handle int32  `json:"handle,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// Streams of a command, as "read" numbers them.
const (
	ExecStdout = 1
	ExecStderr = 2
)

// ExecExit answers "wait": how the command ended, or Error alone.
type ExecExit struct {
	// ExitCode is the exit status; -1 if a signal ended the command, which Signal then names ("killed").
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	// Stopped says why the host ended the command, if it did.
	Stopped string `json:"stopped,omitempty"`
	// Cut are the streams ("stdout", "stderr") that had more output than the host passes on.
	Cut []string `json:"cut,omitempty"`
	// Unjudged are programs that it started of which the host knows nothing: no rule looked into them, the sandbox alone held them.
	Unjudged []string `json:"unjudged,omitempty"`
	Error    *Error   `json:"error,omitempty"`
}

// Reasons why the host ends a command.
const (
	StoppedTime   = "timeout" // its time was up
	StoppedOutput = "output"  // it wrote more than a command may
)
