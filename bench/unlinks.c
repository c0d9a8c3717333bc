/* Makes COUNT files in FOLDER and times their unlinkat(2), all by the folder's descriptor.
 * unlinks FOLDER COUNT OUTPUT: writes {"operation": nanoseconds per call} to OUTPUT. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int folder = open(argv[1], O_RDONLY | O_DIRECTORY);
    int count = atoi(argv[2]);
    char name[32];
    if (folder < 0)
        return 3;
    for (int at = 0; at < count; at++) {
        snprintf(name, sizeof name, "file-%06d", at);
        int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (file < 0)
            return 4;
        close(file);
    }
    double began = now();
    for (int at = 0; at < count; at++) {
        snprintf(name, sizeof name, "file-%06d", at);
        if (unlinkat(folder, name, 0) < 0)
            return 5;
    }
    double took = (now() - began) / count;
    FILE *output = fopen(argv[3], "w");
    if (!output)
        return 6;
    fprintf(output, "{\"operation\": %.1f}\n", took);
    return fclose(output) ? 7 : 0;
}
