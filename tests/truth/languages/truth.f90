! Fortran: arithmetic, and a product of matrices.
module work
  implicit none
  integer, volatile :: total = 0
  real, volatile :: last = 0
contains
  subroutine leaf()

    integer :: i, x
    x = 1
    do i = 1, 400000
      x = iand(x * 77 + i, 65535)
    end do
    total = x
  end subroutine

  subroutine multiplying()

    real :: a(150, 150), b(150, 150)
    call random_number(a)
    b = matmul(a, a)
    last = b(5, 5)
  end subroutine

  real function spend(seconds, call)
    real, intent(in) :: seconds
    interface
      subroutine call()
      end subroutine
    end interface
    real :: start, now
    call cpu_time(start)
    now = start
    do while (now - start < seconds)
      call call()
      call cpu_time(now)
    end do
    spend = now - start
  end function
end module

program truth
  use work
  implicit none
  real :: first = 0, second = 0
  integer :: round
  do round = 1, 8
    first = first + spend(0.08, leaf)
    second = second + spend(0.05, multiplying)
  end do
  print '(a,f5.2)', 'leaf ', 100 * first / (first + second)
  print '(a,f5.2)', 'multiplying ', 100 * second / (first + second)
end program
