package abi

// ExecModule belongs to the permission exec.
const ExecModule = "hako:exec/1"

// ExecRequest is the argument of "start" of ExecModule. Exactly one of Argv and Line is set.
type ExecRequest struct {
	// Argv is a program and its arguments, which are passed unchanged.
	Argv []string `json:"argv,omitempty"`
	// Line is a shell command line.
	Line string `json:"line,omitempty"`
	// Cwd is the working directory: as the guest sees it ("/workspace/sub"), as the host does, or relative to the first
	// mount. Empty means the first mount, or an empty directory without mounts; an error if commands cannot use it.
	Cwd string `json:"cwd,omitempty"`
	// TimeoutMS bounds the command, in milliseconds, without the time in which a person is asked. Zero means the call's
	// deadline.
	TimeoutMS int64 `json:"timeoutMs,omitempty"`
}

// ExecStarted is the result of "start": the handle of the command, or Error alone.
type ExecStarted struct {
	Handle int32  `json:"handle,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// Streams of a command, as "read" numbers them.
const (
	ExecStdout = 1
	ExecStderr = 2
)

// ExecExit is the result of "wait": how the command ended, or Error alone.
type ExecExit struct {
	// ExitCode is the exit status, or -1 if a signal ended the command; Signal is the name of that signal ("killed").
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	// Stopped explains why the host ended the command: StoppedTime or StoppedOutput.
	Stopped string `json:"stopped,omitempty"`
	// Cut lists the streams ("stdout", "stderr") whose output exceeded the limit.
	Cut []string `json:"cut,omitempty"`
	// Unjudged lists started programs that no rule covers: only the sandbox restricted them.
	Unjudged []string `json:"unjudged,omitempty"`
	Error    *Error   `json:"error,omitempty"`
}

// Reasons why the host ends a command.
const (
	StoppedTime   = "timeout" // the timeout
	StoppedOutput = "output"  // the limit of output
)
