/* Its library's constructor does all: see spinning.c. */
void spin_in_library(void);

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		spin_in_library();
	return 0;
}
