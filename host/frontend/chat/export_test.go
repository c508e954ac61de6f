package chat

// Die makes the store believe that the Engine's process has died.
func (e *Engine) Die() { e.conversations.process.release() }
