package learn

import "sync"

// Together calls do n times at once, with 0 to n-1, and wants every call to
// succeed. Of the steps do may take Ask only.
func (s *Stand) Together(n int, do func(i int) error) {
	errs := make([]error, n)
	begin := make(chan struct{})
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			<-begin
			errs[i] = do(i)
		})
	}
	close(begin)
	calls.Wait()
	s.Must(errs...)
}
