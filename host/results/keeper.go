// Package results keeps tool results that are too large for a model, so that their caller can read them in parts.
//
// Keeper.Shorten replaces a large result by its beginning and a link (hako-result:///ID). Keeper.Source offers the tool
// read_result and the resource behind the link. A result is kept in memory, for the caller that it was for and nobody
// else, until its time is over or newer results need the room. Fit shortens text without keeping it.
package results

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Options configures a Keeper. A nil *Options means all defaults.
type Options struct {
	// PerCaller and Total bound the kept results of one caller and of all callers, in bytes. Zero means 16 MiB and
	// 64 MiB.
	PerCaller, Total int64
	// Lifetime is how long a result is kept. Zero means an hour.
	Lifetime time.Duration
}

// Keeper keeps results. It is safe for concurrent use.
type Keeper struct {
	options Options

	// mu guards the fields below.
	mu      sync.Mutex
	kept    map[string]*kept // by ID
	callers map[string]*caller
	bytes   int64
}

// caller has the results of one caller, the oldest first.
type caller struct {
	kept  []*kept
	bytes int64
}

// kept is a document that is kept. It does not change.
type kept struct {
	document
	id, owner string
	expires   time.Time
	expiry    *time.Timer
}

// document is a large part of a result.
type document struct{ tool, mimeType, text string }

// overhead is the memory of a kept document besides its content, in bytes.
const overhead = 512

func (d *document) size() int64 { return int64(len(d.text) + overhead) }

// New returns a Keeper without results.
func New(options *Options) *Keeper {
	k := &Keeper{kept: map[string]*kept{}, callers: map[string]*caller{}}
	if options != nil {
		k.options = *options
	}
	k.options.PerCaller = cmp.Or(k.options.PerCaller, 16<<20)
	k.options.Total = cmp.Or(k.options.Total, 64<<20)
	k.options.Lifetime = cmp.Or(k.options.Lifetime, time.Hour)
	return k
}

// errTooLarge says that a document is larger than the limits for all results together.
var errTooLarge = errors.New("it is larger than what is kept of results (results.perCaller, results.total)")

// keep keeps a document for its owner. Older results give way where it needs the room: first the owner's own, then
// those of the caller who has most.
func (k *Keeper) keep(owner string, d document) (*kept, error) {
	size := d.size()
	if size > k.options.PerCaller || size > k.options.Total {
		return nil, errTooLarge
	}
	added := &kept{document: d, id: strings.ToLower(rand.Text()), owner: owner,
		expires: time.Now().Add(k.options.Lifetime)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.callers[owner]; c != nil {
		for len(c.kept) > 0 && c.bytes+size > k.options.PerCaller {
			k.remove(c.kept[0])
		}
	}
	for k.bytes+size > k.options.Total {
		k.remove(k.largest().kept[0])
	}
	c := k.callers[owner]
	if c == nil {
		c = new(caller)
		k.callers[owner] = c
	}
	c.kept = append(c.kept, added)
	c.bytes += size
	k.bytes += size
	k.kept[added.id] = added
	added.expiry = time.AfterFunc(k.options.Lifetime, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.remove(added)
	})
	return added, nil
}

// largest returns the caller with the most bytes. mu is held, and there is one.
func (k *Keeper) largest() (most *caller) {
	for _, c := range k.callers {
		if most == nil || c.bytes > most.bytes {
			most = c
		}
	}
	return most
}

// remove removes a document that may be gone already. mu is held.
func (k *Keeper) remove(gone *kept) {
	if k.kept[gone.id] != gone {
		return
	}
	gone.expiry.Stop()
	delete(k.kept, gone.id)
	c := k.callers[gone.owner]
	for i, other := range c.kept {
		if other == gone {
			c.kept = append(c.kept[:i:i], c.kept[i+1:]...)
			break
		}
	}
	c.bytes -= gone.size()
	k.bytes -= gone.size()
	if len(c.kept) == 0 {
		delete(k.callers, gone.owner)
	}
}

// find returns a document of the owner. The error does not tell whether another caller has one with this ID.
func (k *Keeper) find(owner, id string) (*kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found := k.kept[id]; found != nil && found.owner == owner {
		return found, nil
	}
	return nil, fmt.Errorf(
		"no result %q is kept for you. hako keeps results for %s, or until newer ones need the room: "+
			"call the tool again", shownID(id), k.options.Lifetime)
}

// shownID bounds an ID from a caller in a message.
func shownID(id string) string { return strings.ToValidUTF8(id[:min(len(id), 40)], "") }

// Size returns the number of kept results and their size in bytes.
func (k *Keeper) Size() (count int, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept), k.bytes
}
