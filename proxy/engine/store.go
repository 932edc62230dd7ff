package engine

import (
	gocache "github.com/patrickmn/go-cache"

	"github.com/bentabol/mcp-retry/schema"
)

// store holds results by key, oldest out first when it grows over its limits. The results themselves lie in go-cache,
// which has no bound and reads the wall clock: entries go in without its expiry, and whoever reads one judges its age in
// engine time.
//
// It is one store for what is cached and what is kept, so that they share one limit.
type store struct {
	limit   schema.CacheLimit
	items   *gocache.Cache
	bytes   int64
	kept    int    // how many of the items are *kept
	oldest  *entry // a list in the order of arrival
	newest  *entry
	evicted func(*entry) // called for each entry that had to go
}

// overhead is what an entry costs beside its result, in bytes, roughly.
const overhead = 256

// entry is one stored result.
type entry struct {
	key        digest
	value      any // *cached or *kept
	size       int64
	prev, next *entry
}

func newStore(limit schema.CacheLimit) *store {
	return &store{limit: limit, items: gocache.New(gocache.NoExpiration, 0)}
}

func (s *store) get(key digest) any {
	if s.oldest == nil {
		return nil
	}
	found, ok := s.items.Get(string(key[:]))
	if !ok {
		return nil
	}
	return found.(*entry).value
}

// put stores a value of so many bytes and reports whether it fits at all.
func (s *store) put(key digest, value any, bytes int) bool {
	s.drop(key)
	size := int64(bytes) + overhead
	if size > s.limit.MaxBytes || s.limit.MaxEntries < 1 {
		return false
	}
	for s.bytes+size > s.limit.MaxBytes || s.items.ItemCount() >= s.limit.MaxEntries {
		victim := s.oldest
		s.unlink(victim)
		if s.evicted != nil {
			s.evicted(victim)
		}
	}
	e := &entry{key: key, value: value, size: size, prev: s.newest}
	if s.newest != nil {
		s.newest.next = e
	} else {
		s.oldest = e
	}
	s.newest = e
	s.bytes += size
	if _, ok := value.(*kept); ok {
		s.kept++
	}
	s.items.Set(string(key[:]), e, gocache.NoExpiration)
	return true
}

// drop forgets a key, whether it is there or not.
func (s *store) drop(key digest) {
	if s.oldest == nil {
		return
	}
	if found, ok := s.items.Get(string(key[:])); ok {
		s.unlink(found.(*entry))
	}
}

func (s *store) unlink(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		s.oldest = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		s.newest = e.prev
	}
	s.bytes -= e.size
	if _, ok := e.value.(*kept); ok {
		s.kept--
	}
	s.items.Delete(string(e.key[:]))
}
