package approval

// OnOutage sets a function that is called after each attempt, to "claim" or to store an "answer", that failed because
// of an outage of the store. It is set before the first question.
func (d *Queue) OnOutage(f func(attempt string)) { d.onOutage = f }
