# Compiled as it is: the frames between a payload and its reader.
