package broker

// Prices of operations, in steps. They count against the CPU limit of the call like the guest's own steps. Package fuel
// has the prices of calls, copies and texts, and docs/security.md the list.
const (
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
	// LineSteps is the price of a line in the log, and of a progress report.
	LineSteps = 2_000
	// RequestSteps is the price of an HTTP request, StatementSteps of an SQL statement, CommandSteps of a command.
	RequestSteps, StatementSteps, CommandSteps = 50_000, 2_000, 200_000
	// ToolCallSteps is the price of calling another tool, besides the steps that the tool takes.
	ToolCallSteps = 50_000
	// MicrosecondSteps is the price of a microsecond of SQLite.
	MicrosecondSteps = 100
)
