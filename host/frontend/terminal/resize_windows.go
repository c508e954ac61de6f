package terminal

// sequences reports whether terminals of this system interpret control sequences. Consoles of Windows do so only in a
// mode that hako does not set; they edit lines on their own.
const sequences = false

func onResize(func()) (stop func()) { return func() {} }
