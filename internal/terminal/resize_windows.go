package terminal

// canEdit says that the editor works on this system. Consoles of Windows read whole lines and edit them on their own.
const canEdit = false

func onResize(func()) (stop func()) { return func() {} }
