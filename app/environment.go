package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// envPrefix is what our variables begin with.
const envPrefix = "SECKILL_"

// checkVariables refuses variables of ours that no flag reads: a typing error would
// have the default, silently.
func checkVariables(flags []*kong.Flag, environ []string) error {
	known := []string{passwordEnv}
	var named []*kong.Flag
	for _, f := range flags {
		if known = append(known, f.Envs...); len(f.Envs) > 0 {
			named = append(named, f)
		}
	}
	var errs []error
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		if !ours || slices.Contains(known, name) || ofCluster(rest, value) {
			continue
		}
		meant := envPrefix + strings.ToUpper(strings.ReplaceAll(nearest(rest, named), "-", "_"))
		errs = append(errs, fmt.Errorf("environment: no flag reads %s: did you mean %s?", name, meant))
	}
	return errors.Join(errs...)
}

// ofCluster reports whether Kubernetes sets a variable, for each service of the
// namespace whose name begins with ours.
func ofCluster(rest, value string) bool {
	if regexp.MustCompile(`^(\w+_)?SERVICE_(HOST|PORT(_\w+)?)$`).MatchString(rest) {
		return true
	}
	return regexp.MustCompile(`^(\w+_)?PORT$`).MatchString(rest) && strings.Contains(value, "://") ||
		regexp.MustCompile(`^(\w+_)?PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`).MatchString(rest)
}
