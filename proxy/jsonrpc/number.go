package jsonrpc

import (
	"bytes"
	"strconv"
)

// decimal is the exact value of a JSON number: ±0.DIGITS × 10^point. Zero has no digits and no sign.
type decimal struct {
	negative bool
	digits   []byte // without leading and trailing zeros
	point    int64
}

// maxExponentDigits bounds exponents so that their sums fit an int64.
const maxExponentDigits = 18

// parseDecimal reads a valid number token. ok is false if its exponent is out of all reason. It copies the digits only
// if a decimal point stands between them.
func parseDecimal(raw []byte) (d decimal, ok bool) {
	mantissa := raw
	if e := bytes.IndexAny(raw, "eE"); e >= 0 {
		mantissa = raw[:e]
		exp := raw[e+1:]
		minus := exp[0] == '-'
		if minus || exp[0] == '+' {
			exp = exp[1:]
		}
		exp = bytes.TrimLeft(exp, "0")
		if len(exp) > maxExponentDigits {
			// Zero is zero, whatever the exponent.
			if len(bytes.Trim(mantissa, "-0.")) == 0 {
				return decimal{}, true
			}
			return decimal{}, false
		}
		for _, c := range exp {
			d.point = d.point*10 + int64(c-'0')
		}
		if minus {
			d.point = -d.point
		}
	}
	if mantissa[0] == '-' {
		d.negative = true
		mantissa = mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	fraction = bytes.TrimRight(fraction, "0")
	whole = bytes.TrimLeft(whole, "0")
	switch {
	case len(fraction) == 0:
		d.point += int64(len(whole))
		d.digits = bytes.TrimRight(whole, "0")
	case len(whole) == 0:
		d.digits = bytes.TrimLeft(fraction, "0")
		d.point -= int64(len(fraction) - len(d.digits))
	default:
		d.point += int64(len(whole))
		d.digits = append(append(make([]byte, 0, len(whole)+len(fraction)), whole...), fraction...)
	}
	if len(d.digits) == 0 {
		return decimal{}, true
	}
	return d, true
}

// appendCanonicalNumber appends the one spelling of the number that a valid token states. ok is false, and nothing is
// appended, if its exponent is out of all reason.
func appendCanonicalNumber(dst, raw []byte) (_ []byte, ok bool) {
	if len(raw) <= maxTrailingZeros && string(raw) != "-0" && digits(raw[1:], 0) == len(raw)-1 {
		return append(dst, raw...), true
	}
	d, ok := parseDecimal(raw)
	if !ok {
		return dst, false
	}
	return d.append(dst), true
}

// Zeros that are written out before an exponent is used instead, behind the digits of an integer and before those of
// a fraction.
const (
	maxTrailingZeros = 21
	maxLeadingZeros  = 6
)

// append appends the number's only spelling: plain if it takes few zeros, else with an exponent.
func (d decimal) append(dst []byte) []byte {
	n := int64(len(d.digits))
	if n == 0 {
		return append(dst, '0')
	}
	if d.negative {
		dst = append(dst, '-')
	}
	switch {
	case d.point >= n && d.point-n <= maxTrailingZeros:
		dst = append(dst, d.digits...)
		return appendZeros(dst, d.point-n)
	case d.point > 0 && d.point < n:
		dst = append(dst, d.digits[:d.point]...)
		dst = append(dst, '.')
		return append(dst, d.digits[d.point:]...)
	case d.point <= 0 && d.point >= -maxLeadingZeros:
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -d.point)
		return append(dst, d.digits...)
	}
	dst = append(dst, d.digits[0])
	if n > 1 {
		dst = append(dst, '.')
		dst = append(dst, d.digits[1:]...)
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, d.point-1, 10)
}

func appendZeros(dst []byte, n int64) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}

// int53 returns the number if it is an integer of at most ±2^53, beyond which a float64 cannot tell neighbours apart.
func (d decimal) int53() (int64, bool) {
	const limit = 1 << 53
	n := int64(len(d.digits))
	if d.point < n || d.point > 16 {
		return 0, n == 0
	}
	var v int64
	for _, c := range d.digits {
		v = v*10 + int64(c-'0')
	}
	for range d.point - n {
		v *= 10
	}
	if v > limit {
		return 0, false
	}
	if d.negative {
		v = -v
	}
	return v, true
}
