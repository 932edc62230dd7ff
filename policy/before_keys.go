package policy

// setKey writes a key that does not depend on the call.
func (b *Before) setKey(key keyLiteral, cand *candidate) {
	b.KeyRule = cand.rule.name
	switch key.answer {
	case keyStated:
		b.Key = key.text
	case keyOff:
		b.NoDedup = true
	case keyNone:
		b.KeyRequired, b.KeyError = true, "the key is null"
	}
}

// evaluateKey decides the idempotency key. A key that errs or, where it is required, is null ends the search: the call is
// refused, or goes on without a rule's key.
func (b *Before) evaluateKey(c *Call, cand *candidate) bool {
	s := cand.setting
	v, err := s.expr.eval(c)
	start := len(b.keyBuffer)
	var answer keyAnswer
	if err == nil {
		b.keyBuffer, answer, err = appendKey(b.keyBuffer, v)
	}
	switch {
	case err != nil:
		c.failSetting(cand, err)
		b.KeyRule, b.KeyRequired, b.KeyError = cand.rule.name, s.required, c.Errors[len(c.Errors)-1].Message
		b.keyBuffer = b.keyBuffer[:start]
	case answer == keyOff:
		b.KeyRule, b.NoDedup = cand.rule.name, true
	case answer == keyStated:
		b.KeyRule, b.Key = cand.rule.name, b.keyBuffer[start:len(b.keyBuffer):len(b.keyBuffer)]
	case s.required:
		b.KeyRule, b.KeyRequired, b.KeyError = cand.rule.name, true, "the key is null"
	default:
		return false
	}
	return true
}

// evaluateCacheKey decides the key of the cache. One that errs keeps the call out of the cache.
func (b *Before) evaluateCacheKey(c *Call, cand *candidate) bool {
	v, err := cand.setting.expr.eval(c)
	start := len(b.keyBuffer)
	var answer keyAnswer
	if err == nil {
		b.keyBuffer, answer, err = appendKey(b.keyBuffer, v)
	}
	switch {
	case err != nil:
		c.failSetting(cand, err)
		b.NoCache = true
		b.keyBuffer = b.keyBuffer[:start]
	case answer == keyOff:
		b.NoCache = true
	case answer == keyStated:
		b.CacheKey = b.keyBuffer[start:len(b.keyBuffer):len(b.keyBuffer)]
	default:
		return false
	}
	return true
}

// evaluateInvalidates decides what the call makes stale. Where that errs it is everything.
func (b *Before) evaluateInvalidates(c *Call, cand *candidate) {
	s := cand.setting
	b.InvalidatesStated = true
	var err error
	if s.expr == nil {
		for _, item := range s.literal.([]invalidation) {
			stale := Invalidates{Tool: item.tool, Args: item.fixed}
			if item.args != nil {
				v, evalErr := item.args.eval(c)
				if evalErr == nil {
					stale.Args, evalErr = toArgs(v)
				}
				if evalErr != nil {
					c.fail("invalidates", cand.rule, item.args, item.text, evalErr)
					b.InvalidatesAll = true
					return
				}
			}
			b.staleBuffer = append(b.staleBuffer, stale)
		}
	} else {
		v, evalErr := s.expr.eval(c)
		err = evalErr
		if err == nil {
			b.staleBuffer, err = appendInvalidates(b.staleBuffer, v)
		}
		if err != nil {
			c.failSetting(cand, err)
			b.InvalidatesAll = true
			return
		}
	}
	b.Invalidates = b.staleBuffer
}

// lookAtCache decides whether the call can meet a cached result. c is nil when the table is made: then no when is asked. It
// returns the rule that says for sure that there is none to be kept, if one does.
func (t *table) lookAtCache(c *Call, b *Before) (never *candidate) {
	b.CacheMayFill, b.CacheStated = false, false
	for i := range t.cacheTTL {
		cand := &t.cacheTTL[i]
		sure := cand.always
		if !sure && cand.rule.early {
			if !c.applies(cand) {
				continue
			}
			sure = true
		}
		if cand.setting.expr == nil && isZero(cand.setting.literal) {
			if sure {
				return cand
			}
			continue
		}
		b.CacheMayFill = true
		b.CacheStated = true
		if sure {
			return nil
		}
	}
	return nil
}
