package slackbot

import "time"

func init() { commandTime = time.Minute } // on a busy machine

// StreamFor makes streamed messages end after d. It is to be called before Run.
func (b *Bot) StreamFor(d time.Duration) { b.streamTime = d }

// LoseLock simulates that the store loses the lock of this process.
func (b *Bot) LoseLock() { b.journal.end() }

// LookEvery makes bots look every d for what others have left, until the test ends. No test runs at the same time.
func LookEvery(t interface{ Cleanup(func()) }, d time.Duration) {
	before := lostPoll
	lostPoll = d
	t.Cleanup(func() { lostPoll = before })
}

// AtSlack reports whether an address is Slack's, for a workspace of the usual API.
func AtSlack(address string) bool { return new(workspace).atSlack(address) }
