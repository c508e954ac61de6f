package broker

// Prices of host work, in steps. They count against the CPU limit of the call like the guest's own steps. One step
// stands for about 5 ns of a core. docs/security.md has the list.
const (
	// CallSteps is the price of every host function.
	CallSteps = 10
	// bytesPerStep is the number of bytes that may be copied for one step, as in the guest.
	bytesPerStep = 16
	// RandomSteps is the price of one random byte.
	RandomSteps = 1
	// PathSteps is the price of opening one path element. FileSteps is the price of any other file operation.
	PathSteps, FileSteps = 500, 200
	// ChangeSteps is the price of making, removing or renaming a file or directory.
	ChangeSteps = 5_000
	// ListSteps is the price of beginning to list a directory.
	ListSteps = 10_000
	// SyncSteps is the price of an fsync.
	SyncSteps = 20_000
	// EntrySteps is the price of one element of a list whose length the guest chooses: directory entries, vectors,
	// subscriptions, headers, rows.
	EntrySteps = 50
	// TextSteps is the price of one byte that is parsed as JSON, case-folded, matched against a pattern, or searched
	// for secrets.
	TextSteps = 1
	// ValueSteps is the price of one value that a component passes or gets, besides the bytes of strings.
	ValueSteps = 5
	// LineSteps is the price of a line in the log, and of a progress report.
	LineSteps = 2_000
	// RequestSteps is the price of an HTTP request, StatementSteps of an SQL statement, CommandSteps of a command.
	RequestSteps, StatementSteps, CommandSteps = 50_000, 2_000, 200_000
	// ToolCallSteps is the price of calling another tool, besides the steps that the tool takes.
	ToolCallSteps = 50_000
	// MicrosecondSteps is the price of a microsecond of SQLite.
	MicrosecondSteps = 100
)

// CopySteps is the price of copying n bytes.
func CopySteps(n uint64) int64 { return int64(min(n, 1<<40) / bytesPerStep) }
