package slackbot

import "time"

// StreamFor makes streamed messages end after d. It is to be called before Run.
func (b *Bot) StreamFor(d time.Duration) { b.streamTime = d }
